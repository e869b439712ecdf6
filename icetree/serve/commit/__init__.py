"""Commits of clients: what they require, what they change, and how it becomes one commit."""
