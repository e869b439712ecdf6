"""What there is to see of a table, as plain values that any page can show."""
