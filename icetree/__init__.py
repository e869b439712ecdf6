"""Iceberg V4 tables with an adaptive metadata tree, in Python, with Spark for the data."""

__version__ = "0.1.0"

__all__ = ["__version__"]
