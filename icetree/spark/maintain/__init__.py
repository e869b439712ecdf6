"""Maintenance at scale: what the verbs of a table do, with the work on executors."""
