"""Does a tree hold what it must, and tell what it changed."""
