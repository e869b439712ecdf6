"""The edge: sockets, and HTTP read within limits."""
