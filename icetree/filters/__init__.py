"""Filters as people write and read them: text to expressions and back."""
