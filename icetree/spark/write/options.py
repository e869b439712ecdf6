"""Options of one write, by the names that Iceberg gives them on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from msgspec import structs
from typing_extensions import Unpack

from icetree.errors import InvalidInput, Unsupported
from icetree.rows.formats import avro as as_avro
from icetree.rows.formats import orc as as_orc
from icetree.rows.formats import parquet as as_parquet
from icetree.rows.formats.formats import WRITE_FORMAT, format_to_write
from icetree.rows.write.write import TARGET_FILE_SIZE
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.properties.names import DISTRIBUTION
from icetree.spec.texts import did_you_mean
from icetree.table.commit.options import CommitOptions

#: Options that say for one write what a property says for all.
_PROPERTIES: Final[Mapping[str, str]] = {
    "target-file-size-bytes": TARGET_FILE_SIZE,
    "distribution-mode": DISTRIBUTION,
    "write-format": WRITE_FORMAT,
}
#: Options of how files are compressed, by the format of these.
_COMPRESSION: Final[Mapping[str, Mapping[str, str]]] = {
    "compression-codec": {
        "parquet": as_parquet.CODEC,
        "orc": as_orc.CODEC,
        "avro": as_avro.CODEC,
    },
    "compression-level": {"parquet": as_parquet.LEVEL, "avro": as_avro.LEVEL},
    "compression-strategy": {"orc": as_orc.STRATEGY},
}
#: What may be said only as it is done anyway, and why.
_FIXED: Final[Mapping[str, tuple[str, str]]] = {
    "delete-format": ("puffin", "deleted rows are marked in Puffin files"),
    "delete-granularity": ("file", "deleted rows are marked file by file"),
    "check-nullability": ("true", "a null never gets into a required column"),
    "check-ordering": ("false", "columns are matched by name, in any order"),
}
#: What means nothing here, and does no harm.
_IDLE: Final = frozenset({"fanout-enabled"})
_INSTEAD: Final[Mapping[str, str]] = {
    "validate-from-snapshot-id": "conflicts are looked for since the write began; UPDATE, DELETE "
    "and MERGE look from the snapshot that they read",
    "overwrite-mode": "call overwrite(…) or replace_partitions()",
    "advisory-partition-size": "set spark.sql.adaptive.advisoryPartitionSizeInBytes",
    "target-delete-file-size-bytes": "a commit writes one file of deletes",
}
_SUMMARY: Final = "snapshot-property."
_OWN: Final = (
    *("branch", "isolation-level", "key", "merge-schema", "output-spec-id"),
    "use-table-distribution-and-ordering",
)
NAMES: Final = (
    *_OWN,
    *_PROPERTIES,
    *_COMPRESSION,
    *_FIXED,
    *sorted(_IDLE),
    *_INSTEAD,
    f"{_SUMMARY}NAME",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one write differs from what the table says."""

    #: What its transaction takes.
    how: CommitOptions = field(default_factory=CommitOptions)
    merges: bool = False
    #: Properties of the table, for this write alone.
    properties: Mapping[str, str] = field(default_factory=dict)
    #: Those of `_COMPRESSION` that are said.
    compression: Mapping[str, str] = field(default_factory=dict)
    #: Whether rows are brought together and sorted as the table says.
    arranges: bool = True
    spec_id: int | None = None

    def over(self, metadata: TableMetadata) -> TableMetadata:
        """Return the table's metadata as the writers of rows are to see it."""
        properties = {**metadata.properties, **self.properties}
        changed: dict[str, Any] = {"properties": {**properties, **self._packing(properties)}}
        if not self.arranges:
            changed["properties"][DISTRIBUTION] = "none"
            changed["default_sort_order_id"] = 0
        if self.spec_id is not None:
            known = metadata.shape().specs
            if self.spec_id not in known:
                told = ", ".join(map(str, sorted(known)))
                raise InvalidInput(f"option output-spec-id={self.spec_id}: there are {told}")
            changed["default_spec_id"] = self.spec_id
        return structs.replace(metadata, **changed)

    def _packing(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return how files are compressed, as properties of the format that is written."""
        if not self.compression:
            return {}
        format = format_to_write(properties).name
        found = {}
        for option, value in self.compression.items():
            name = _COMPRESSION[option].get(format)
            if name is None:
                raise Unsupported(f"option {option}: {format} has none")
            found[name] = value
        return found

    def noting(self, **more: Unpack[CommitOptions]) -> Options:
        """Return them with more that a transaction takes; parts of summaries add up."""
        if "summary" in more:
            more["summary"] = {**(self.how.get("summary") or {}), **(more["summary"] or {})}
        return replace(self, how={**self.how, **more})

    def option(self, name: str, value: Any) -> Options:
        """Return them with one more; what cannot be done is refused, and so is what is not known."""
        low, text = name.lower(), str(value)
        if low in _PROPERTIES:
            return replace(self, properties={**self.properties, _PROPERTIES[low]: text.lower()})
        if low in _COMPRESSION:
            return replace(self, compression={**self.compression, low: text.lower()})
        if low.startswith(_SUMMARY):
            return self.noting(summary={name[len(_SUMMARY) :]: text})
        if low in _FIXED:
            only, why = _FIXED[low]
            if text.lower() != only:
                raise Unsupported(f"option {low}={text!r}: {why}, so only {only!r} can be said")
            return self
        if low in _INSTEAD:
            raise Unsupported(f"option {low}: {_INSTEAD[low]}")
        if low in _IDLE:
            _flag(low, text)
            return self
        found = self._own(low, text)
        if found is None:
            hint = did_you_mean(low, NAMES) or f"; there are {', '.join(sorted(NAMES))}"
            raise InvalidInput(f"option {name!r} is not known{hint}")
        return found

    def _own(self, low: str, text: str) -> Options | None:
        match low:
            case "branch":
                return self.noting(branch=text)
            case "key":
                return self.noting(key=text)
            case "isolation-level":
                return self.noting(isolation=text.lower())
            case "merge-schema" | "mergeschema":
                return replace(self, merges=_flag(low, text))
            case "use-table-distribution-and-ordering":
                return replace(self, arranges=_flag(low, text))
            case "output-spec-id":
                if not text.isdigit():
                    raise InvalidInput(f"option {low}={text!r}: give the number of a spec")
                return replace(self, spec_id=int(text))
        return None


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidInput(f"option {name}={text!r}: allowed are true and false")
    return text.lower() == "true"
