"""Columns: their types, where they stand in a schema, and what is made of them."""
