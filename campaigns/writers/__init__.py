"""Sixteen writers, one table, as fast as they can: none is lost, none gives up."""
