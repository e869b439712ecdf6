"""What updates do to table metadata."""
