"""From rows to data files: fitted, partitioned, sorted, measured."""
