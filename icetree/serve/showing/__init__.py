"""What clients are shown of a table, and what the stock ones can make of it."""
