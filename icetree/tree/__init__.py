"""The pure heart: how a root grows, is pruned, planned, compared and checked."""
