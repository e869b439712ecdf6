"""`icetree demo`: a small table's life, its tree, and a few laws proved before one's eyes."""
