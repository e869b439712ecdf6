"""From data files to rows: columns found, deletes applied, filters tested."""
