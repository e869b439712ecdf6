"""Views in statements: temporary ones, and those that the lake keeps."""
