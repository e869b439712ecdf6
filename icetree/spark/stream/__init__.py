"""Streams into tables and out of them."""
