"""Bytes to nouns and back, without any I/O."""
