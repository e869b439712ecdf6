"""A long life of one table: thousands of commits by several writers, with trouble at random."""
