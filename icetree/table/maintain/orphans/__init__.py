"""Files that nothing names, and whose else a file in a folder may be."""
