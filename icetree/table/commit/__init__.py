"""Committing: what a change comes to, whether it may land, and the loop that lands it."""
