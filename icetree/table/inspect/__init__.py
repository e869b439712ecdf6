"""Inspection: what a table is made of, as Arrow tables."""
