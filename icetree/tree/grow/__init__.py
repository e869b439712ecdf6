"""From a root and a change to the next root."""
