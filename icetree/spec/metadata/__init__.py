"""Table metadata and what it holds: snapshots, layouts, history, and changes of it."""
