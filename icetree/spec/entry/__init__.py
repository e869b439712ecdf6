"""Content entries and their stats: what one row of a manifest says."""
