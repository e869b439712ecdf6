"""The change feed on Spark."""
