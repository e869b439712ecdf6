"""Scans planned by the server: which files a client reads, as JSON of the REST protocol."""
