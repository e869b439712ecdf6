"""What keeps a table fast and small over the years."""
