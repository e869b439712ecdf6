"""Verification: every rule of the format, over every file a table has."""
