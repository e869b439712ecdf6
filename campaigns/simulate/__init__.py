"""A deterministic simulation: one seed decides operations, interleavings, clocks and faults."""
