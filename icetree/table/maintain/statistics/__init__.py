"""Statistics that planners read: of a snapshot's columns, and of its partitions."""
