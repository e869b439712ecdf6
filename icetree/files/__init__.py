"""A table's metadata files: read and written as nouns, cached, side by side."""
