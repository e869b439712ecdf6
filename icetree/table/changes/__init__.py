"""Changes between snapshots: files, and rows."""
