"""The format as the code has it: ids, kinds, rules, thresholds, and the test vectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from docs.make.tables import code, table
from icetree.spec import fields as ids
from icetree.spec.entry.entry import ALLOWED, TRANSITIONS, Content, Status
from icetree.spec.metadata.snapshot import Page, Snapshot, SnapshotPage
from icetree.spec.rules.entry import RULES_OF, Rule
from icetree.tree import policy

_VECTORS: Final = Path(__file__).parents[2] / "vectors"

#: What each field of an entry says.
MEANING: Final = {
    "content_type": "what the entry tracks: see below",
    "location": "where the file is; null only for an inline manifest DV",
    "file_format": "`parquet`, `avro`, `orc`, or `puffin` for every deletion vector, inline ones too",
    "status": "what the snapshot that wrote this manifest did to the entry",
    "snapshot_id": "the snapshot that added the file, or removed it where the status is DELETED",
    "sequence_number": "the age of the rows: which deletes apply to them",
    "file_sequence_number": "the age of the file: when it came to the table; of a manifest the same as above",
    "first_row_id": "the row id of a data file's first row; of a data manifest, where its files without one begin",
    "dv_offset": "where the blob begins in the Puffin file",
    "dv_size_in_bytes": "how long the blob is",
    "dv_inline_content": "a manifest DV by itself: a portable 32-bit Roaring bitmap",
    "dv_added_positions": "which of the positions this snapshot added; the same form",
    "partition_spec_id": "the spec that the file was written with; of a manifest, the table's default then",
    "sort_order_id": "the order of a data file's rows",
    "record_count": "rows of a file; entries of a manifest; positions of a deletion vector",
    "file_size_in_bytes": "set whenever `location` is",
    "added_files_count": "entries that are ADDED in the manifest file",
    "existing_files_count": "entries that are EXISTING in it",
    "deleted_files_count": "entries that are DELETED in it",
    "added_rows_count": "rows of the first",
    "existing_rows_count": "rows of the second",
    "deleted_rows_count": "rows of the third",
    "min_sequence_number": "the least `sequence_number` of its live entries",
    "referenced_file": "of a data DV its data file; of a manifest DV its leaf; of a delete manifest the data manifest that it belongs to, or null",
    "key_metadata": "of an encrypted file: its key and prefix, as Iceberg's standard key metadata has them; "
    "of another kind it is carried along, and the file is read as it is",
    "split_offsets": "where row groups begin, ascending",
    "equality_ids": "of equality deletes: the columns that are compared",
}
_TYPES: Final = {"int32": "int", "int64": "long", "string": "string", "binary": "binary"}
_CONTENTS: Final = {
    Content.DATA: "a data file",
    Content.POSITION_DELETES: "a data DV: rows gone from one data file",
    Content.EQUALITY_DELETES: "a file of values: rows that equal one of them are gone",
    Content.DATA_MANIFEST: "a leaf of data files",
    Content.DELETE_MANIFEST: "a leaf of data DVs and equality deletes",
    Content.MANIFEST_DV: "a bitmap of entries gone from one leaf",
}
_STATUSES: Final = {
    Status.EXISTING: "it was there before; so is what flushes and compactions write",
    Status.ADDED: "the snapshot that wrote the manifest added it",
    Status.DELETED: "that snapshot removed it; for readers of rows it is not there",
}
_STATS: Final = {
    "lower": "the field's own type",
    "upper": "the field's own type",
    "tight": "boolean",
    "values": "long",
    "nulls": "long",
    "nans": "long",
    "avg_size": "int",
    "max_size": "int",
}
_STAT_MEANING: Final = {
    "lower": "no value is less; nulls and NaN do not count; -0.0 comes before +0.0",
    "upper": "no value is greater",
    "tight": "both bounds are values that occur",
    "values": "values, nulls among them",
    "nulls": "nulls",
    "nans": "NaN, of `float` and `double`",
    "avg_size": "of variable length: bytes of a value on average",
    "max_size": "of variable length: bytes of the longest",
}


def _type(column: ids.Column) -> str:
    if column.element_id is not None:
        return f"list<{column.element_id}: {_TYPES[str(column.type.value_type)]}>"
    return _TYPES[str(column.type)]


def entry_fields() -> str:
    """Return every field of an entry."""
    rows: list[list[str]] = []
    seen: set[str] = set()
    for column in ids.ENTRY:
        group = column.group
        if group is not None and group.name not in seen:
            seen.add(group.name)
            rows.append([str(group.id), code(group.name), "struct", "", "holds the next ones"])
        name = code(column.stored_as) if group is None else f"· {code(column.stored_as)}"
        need = "yes" if column.required else ""
        rows.append([str(column.id), name, _type(column), need, MEANING[column.name]])
    stats = ids.CONTENT_STATS
    rows.append(
        [
            str(stats.id),
            code(stats.name),
            "struct",
            "",
            "a struct for each field: [stats](stats.md)",
        ]
    )
    return table(["id", "name", "type", "required", "what it says"], rows)


def contents() -> str:
    """Return what an entry may track, and in which manifest."""
    return table(
        ["number", "name", "what it is", "stands in"],
        (
            [each.value, code(each.name), _CONTENTS[each], ", ".join(_places(each))]
            for each in Content
        ),
    )


def _places(content: Content) -> Iterator[str]:
    return (kind for kind, allowed in ALLOWED.items() if content in allowed)


def statuses() -> str:
    """Return the statuses, and what may follow each."""
    return table(
        ["number", "name", "what it says", "after the next commit"],
        ([each.value, code(each.name), _STATUSES[each], _after(each)] for each in Status),
    )


def _after(status: Status) -> str:
    after = TRANSITIONS[status]
    named = [each.name for each in Status if each in after]
    return ", ".join([*map(code, named), *(["gone"] if None in after else [])])


def rules() -> str:
    """Return every rule that one manifest keeps by itself."""
    everywhere = set.intersection(*({rule.says for rule in each} for each in RULES_OF.values()))
    lines = ["Of every manifest:", "", *_sentences(RULES_OF["root"], everywhere)]
    root = {rule.says for rule in RULES_OF["root"]} - everywhere
    lines += ["", "Of a root also:", "", *_sentences(RULES_OF["root"], root)]
    leaf = {rule.says for rule in RULES_OF["data"]} - everywhere
    lines += ["", "Of a leaf also:", "", *_sentences(RULES_OF["data"], leaf)]
    return "\n".join(lines)


def _sentences(of: tuple[Rule, ...], chosen: set[str]) -> list[str]:
    said = dict.fromkeys(rule.says for rule in of if rule.says in chosen)
    return [f"- {_words(each)}" for each in said]


def _words(says: str) -> str:
    """Return a rule in names that are on disk."""
    for column in ids.ENTRY:
        if column.disk_name:
            says = says.replace(
                column.name, f"{column.group and column.group.name}.{column.disk_name}"
            )
    return says.replace(
        "content that may not stand in a", "only content that the table above allows in a"
    )


def stats() -> str:
    """Return the offsets of a field's stats."""
    made = (
        [f"+{at}", code(name), _STATS[stat], _STAT_MEANING[stat]]
        for stat, (at, name) in ids.STAT_OFFSETS.items()
    )
    return table(["offset", "name", "type", "what it says"], made)


def stats_ids() -> str:
    """Return where stats of fields begin."""
    examples = [
        [f"column or expression {id}", id, ids.STATS_START + ids.STATS_STRIDE * id]
        for id in (1, 2, 1000)
    ]
    lineage = {
        ids.ROW_ID_FIELD: "`_row_id`",
        ids.LAST_UPDATED_SEQUENCE_NUMBER_FIELD: "`_last_updated_sequence_number`",
    }
    examples += [[lineage[id], id, start] for id, start in ids.LINEAGE_STATS.items()]
    return table(["field", "its id", "base id of its struct"], examples)


def stats_limits() -> str:
    """Return the ends of the id space, and the ids of coordinates."""
    axes = ", ".join(code(axis) for axis in ids.GEO_AXES)
    lower = f"+{ids.GEO_LOWER_START} to +{ids.GEO_LOWER_START + len(ids.GEO_AXES) - 1}"
    upper = f"+{ids.GEO_UPPER_START} to +{ids.GEO_UPPER_START + len(ids.GEO_AXES) - 1}"
    return "\n".join(
        [
            f"- Bounds of `geometry` and `geography` are structs of doubles {axes}: {lower} below the",
            f"  lower bound, {upper} below the upper one.",
            f"- The last field that can have stats is {ids.LAST_STATS_FIELD:,}: ids of Parquet have 32 bits.",
            f"- Ids of columns and expressions end at {ids.MAX_ID}; those above are of metadata columns.",
        ]
    )


def _noun(kind: type[msgspec.Struct], left_out: frozenset[str] = frozenset()) -> str:
    rows = []
    for field in msgspec.structs.fields(kind):
        if field.name != "extra" and field.name not in left_out:
            need = "yes" if field.required else ""
            rows.append([code(field.encode_name), _annotation(field.type), need])
    return table(["field", "type", "required"], rows)


def _annotation(type: Any) -> str:
    text = str(type)
    for ours, theirs in (
        ("dict[str, str]", "map of texts"), ("tuple[icetree", "list of (icetree"), ("tuple[str", "list of text"),
        ("<class 'str'>", "text"), ("'str'", "text"), ("str | None", "text"), ("str", "text"),
    ):  # fmt: skip
        if ours in text:
            return "list" if theirs.startswith("list of (") else theirs
    return "number" if "int" in text or "Long" in text else text


def snapshot() -> str:
    """Return the fields of a snapshot."""
    return _noun(Snapshot)


def pages() -> str:
    """Return the fields of a page's entry in the metadata."""
    return _noun(SnapshotPage)


def page() -> str:
    """Return the fields of a page."""
    return _noun(Page)


def thresholds() -> str:
    """Return the thresholds of the tree."""
    default = policy.Policy()
    return table(
        ["property", "default"],
        (
            [code(name), f"{getattr(default, field):,}"]
            for field, name in policy._PROPERTIES.items()  # noqa: SLF001
        ),
    )


def vectors() -> str:
    """Return the test vectors, and what each has."""
    rows = []
    for path in sorted(_VECTORS.glob("*/expected.json")):
        told = json.loads(path.read_text("utf-8"))
        rows.append([code(path.parent.name), told["what"], len(told["snapshots"])])
    return table(["folder of `vectors/`", "what it is", "snapshots"], rows)


PARTS: Final[dict[str, Callable[[], str]]] = {
    "entry fields": entry_fields,
    "contents": contents,
    "statuses": statuses,
    "rules": rules,
    "stats": stats,
    "stats ids": stats_ids,
    "stats limits": stats_limits,
    "snapshot": snapshot,
    "snapshot pages": pages,
    "page": page,
    "thresholds": thresholds,
    "vectors": vectors,
}
