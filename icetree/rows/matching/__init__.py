"""Which rows of a source match those of a table, and what these are set to."""
