"""Damaged and hostile bytes for everything that icetree reads."""
