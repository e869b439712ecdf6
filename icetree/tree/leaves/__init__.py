"""How leaves come to be: filled from the root, and put in the place of worn ones."""
