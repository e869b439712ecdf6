"""Tables as `format("icetree")`, the portable face of the engine."""

from icetree.spark.source.source import register

__all__ = ["register"]
