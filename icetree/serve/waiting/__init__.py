"""Who waits for what: for a turn, for others that do the same, for a plan that takes long."""
