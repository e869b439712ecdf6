"""Views by the REST protocol."""
