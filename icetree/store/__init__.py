"""Bytes in and out: where a table's files live."""
