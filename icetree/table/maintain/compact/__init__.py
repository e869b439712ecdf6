"""Compacting data: which files go together, and how they become new ones."""
