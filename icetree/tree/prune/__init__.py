"""A predicate as tests of stats, and the one rule that rules out by them."""
