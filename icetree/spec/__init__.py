"""The frozen nouns of the format."""
