"""Names of table properties that several rooms read, and of those that mean something to others."""

from __future__ import annotations

import re
from typing import Final

DISTRIBUTION: Final = "write.distribution-mode"
DISTRIBUTIONS: Final = ("none", "hash", "range")
#: Of `delete`, `update` and `merge`.
VERBS: Final = ("delete", "update", "merge")
MODE: Final = "write.{}.mode"
MODES: Final = ("merge-on-read", "copy-on-write")
ISOLATION: Final = "write.{}.isolation-level"
WAP_ENABLED: Final = "write.wap.enabled"
#: How large files of deletes are to be.
DELETE_FILE_SIZE: Final = "write.delete.target-file-size-bytes"
METADATA_PATH: Final = "write.metadata.path"
METADATA_COMPRESSION: Final = "write.metadata.compression-codec"
METADATA_COMPRESSIONS: Final = ("gzip", "none")
#: Whether each commit is exported as v3 at once.
EXPORT_ON_COMMIT: Final = "export.on-commit"
#: Whether new data files of stock clients land on what others appended meanwhile.
REBASE_APPENDS: Final = "commit.rebase-appends"

#: Names where a misspelt one would quietly do nothing. All others are anybody's.
RESERVED: Final = (
    "write.",
    "commit.",
    "read.",
    "schema.",
    "encryption.",
    "history.",
    "gc.",
    "export.",
)

#: Families of which every name is known, so that any other is a slip: what icetree reads of them, and
#: these.
CLOSED: Final = tuple(f"write.{each}." for each in ("orc", "avro", "delete.orc", "delete.avro"))
CLOSED_OF_OTHERS: Final = (
    "write.orc.vectorized.batch-size",
    "write.orc.bloom.filter.columns",
    "write.orc.bloom.filter.fpp",
    "write.delete.orc.stripe-size-bytes",
    "write.delete.orc.block-size-bytes",
    "write.delete.orc.vectorized.batch-size",
    "write.delete.orc.compression-codec",
    "write.delete.orc.compression-strategy",
    "write.delete.avro.compression-codec",
    "write.delete.avro.compression-level",
)

_OF_OTHERS: Final = (
    *CLOSED_OF_OTHERS,
    "write.delete.granularity",
    "write.(delete|update|merge).distribution-mode",
    "write.upsert.enabled",
    "write.spark.*",
    "write.summary.partition-limit",
    "write.location-provider.impl",
    "write.object-storage.*",
    "write.folder-storage.path",
    "write.manifest-lists.enabled",
    "write.parquet.page-.*",
    "write.parquet.dict-size-bytes",
    "write.parquet.row-group-check-.*",
    "write.parquet.bloom-filter-.*",
    "write.parquet.stats-enabled.column.*",
    "write.delete.parquet.*",
    "commit.manifest.*",
    "commit.manifest-merge.enabled",
    "read.split.metadata-target-size",
    "read.split.adaptive-size.enabled",
    "read.parquet.vectorization.*",
    "read.orc.*",
    "read.data-planning-mode",
    "read.delete-planning-mode",
    "encryption.aad-length-in-bytes",
)
_PATTERN: Final = re.compile(
    "|".join(each.replace(".", r"[.]").replace("[.]*", ".*") for each in _OF_OTHERS)
)


def is_of_others(name: str) -> bool:
    """Tell a name that Iceberg has and icetree has no use for: it is kept, and does nothing here."""
    return _PATTERN.fullmatch(name) is not None
