"""Manifests: Parquet bytes to entries and back.

Columns are resolved by field id. A column that is null throughout is not written, and a column
that is not there reads as null. What is nested on disk is flat in memory (`spec.entry`).
"""

from icetree.codec.manifest.read import decode
from icetree.codec.manifest.remembered import decode_again
from icetree.codec.manifest.told import Told, told
from icetree.codec.manifest.write import encode

__all__ = ["Told", "decode", "decode_again", "encode", "told"]
