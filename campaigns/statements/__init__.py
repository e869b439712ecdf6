"""Statements that one seed draws, run by icetree and by Iceberg Java: what each leads to is the same."""
