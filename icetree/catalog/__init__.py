"""Who is the head of a table: load it, and swap it for the next."""
