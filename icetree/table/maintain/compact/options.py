"""What a compaction is told: strategy, order and Iceberg's options, each checked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from icetree.errors import InvalidInput
from icetree.rows.write.order import Order, Sorted, ZOrdered
from icetree.rows.write.write import DEFAULT_TARGET_FILE_SIZE, TARGET_FILE_SIZE
from icetree.spec.edit.sort import read_keys
from icetree.spec.edit.terms import read_term
from icetree.spec.metadata.layout import SortField
from icetree.spec.metadata.metadata import TableMetadata, sort_keys_of
from icetree.spec.properties.values import choice, flag, whole_number
from icetree.spec.texts import did_you_mean
from icetree.table.arguments import texts
from icetree.tree.compaction import GroupRules

BINPACK: Final = "binpack"
SORT: Final = "sort"
ZORDER: Final = "zorder"
STRATEGIES: Final = (BINPACK, SORT, ZORDER)

_JOB_ORDERS: Final = ("none", "bytes-asc", "bytes-desc", "files-asc", "files-desc")
MAX_GROUP_SIZE: Final = "max-file-group-size-bytes"
_NAMES: Final = (
    "target-file-size-bytes",
    "min-file-size-bytes",
    "max-file-size-bytes",
    "min-input-files",
    "delete-file-threshold",
    "delete-ratio-threshold",
    "rewrite-all",
    MAX_GROUP_SIZE,
    "partial-progress.enabled",
    "partial-progress.max-commits",
    "max-concurrent-file-group-rewrites",
    "use-starting-sequence-number",
    "output-spec-id",
    "rewrite-job-order",
)
_UNSORTED: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactOptions:
    """How a compaction goes about it."""

    rules: GroupRules
    #: What new files are partitioned by.
    spec_id: int
    #: Groups that are done are committed before all are, in so many commits at most.
    partial: bool
    max_commits: int
    #: Groups that are rewritten side by side.
    concurrent: int
    #: New files are as old as the snapshot that was read, so that later equality deletes reach them.
    keeps_age: bool
    #: Which groups come first: by `bytes` or `files`, ascending or not.
    job_order: str


def options_of(given: Any, metadata: TableMetadata) -> CompactOptions:
    """Return options by Iceberg's names; InvalidInput for one that is not known or makes no sense."""
    options = _as_texts(given)
    number = _reader(options, whole_number)
    usual = GroupRules(target_bytes=1, min_bytes=0, max_bytes=1)
    target = number(
        "target-file-size-bytes",
        default=whole_number(
            metadata.properties, TARGET_FILE_SIZE, default=DEFAULT_TARGET_FILE_SIZE, least=1
        ),
        least=1,
    )
    least = number("min-file-size-bytes", default=int(target * 0.75))
    most = number("max-file-size-bytes", default=int(target * 1.8))
    if not least <= target <= most:
        raise InvalidInput(
            f"files of {target} bytes are neither too small nor too large only if min-file-size-bytes, "
            f"{least}, is no more and max-file-size-bytes, {most}, no less"
        )
    spec_id = number("output-spec-id", default=metadata.default_spec_id)
    if spec_id not in metadata.shape().specs:
        known = ", ".join(map(str, sorted(metadata.shape().specs)))
        raise InvalidInput(
            f"output-spec-id={spec_id}: there is no such partition spec; known are {known}"
        )
    return CompactOptions(
        rules=GroupRules(
            target_bytes=target,
            min_bytes=least,
            max_bytes=most,
            min_input_files=number("min-input-files", default=usual.min_input_files, least=1),
            delete_file_threshold=number(
                "delete-file-threshold", default=usual.delete_file_threshold, least=1
            ),
            delete_ratio_threshold=_ratio(options, usual.delete_ratio_threshold),
            rewrite_all=flag(options, "rewrite-all", default=False),
            max_group_bytes=number(MAX_GROUP_SIZE, default=usual.max_group_bytes, least=1),
        ),
        spec_id=spec_id,
        partial=flag(options, "partial-progress.enabled", default=False),
        max_commits=number("partial-progress.max-commits", default=10, least=1),
        concurrent=number(
            "max-concurrent-file-group-rewrites", default=min(5, os.cpu_count() or 1), least=1
        ),
        keeps_age=flag(options, "use-starting-sequence-number", default=True),
        job_order=choice(options, "rewrite-job-order", _JOB_ORDERS, default="none"),
    )


def _as_texts(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(f"options={given!r}: give a mapping of Iceberg's names to values")
    for name in given:
        if name not in _NAMES:
            raise InvalidInput(
                f"there is no option {name!r} of rewrite_data_files; known are "
                f"{', '.join(_NAMES)}{did_you_mean(str(name), _NAMES)}"
            )
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
    }


def _reader(options: Mapping[str, str], read: Callable[..., int]) -> Callable[..., int]:
    return lambda name, **how: read(options, name, **how)


def _ratio(options: Mapping[str, str], default: float) -> float:
    name = "delete-ratio-threshold"
    try:
        found = float(options.get(name, default))
    except ValueError:
        found = -1.0
    if not 0 < found <= 1:
        raise InvalidInput(f"{name}={options[name]!r}: allowed is a part of 1, such as 0.3")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """The order that rows are written in; None as they come."""

    order: Order | None
    sort_order_id: int | None


def arrangement_of(strategy: Any, order_by: Any, metadata: TableMetadata) -> Arrangement:
    """Return how rows are arranged; InvalidInput where that cannot be.

    A sort order is keys as `order_by` takes them, or `zorder(a, b)`; without one, the table's own.
    """
    name = SORT if strategy is None and order_by is not None else strategy or BINPACK
    if name not in STRATEGIES:
        raise InvalidInput(
            f"strategy={strategy!r}: allowed are {', '.join(STRATEGIES)}"
            f"{did_you_mean(str(strategy), STRATEGIES)}"
        )
    keys = _keys(order_by)
    if name == BINPACK:
        if keys:
            raise InvalidInput(
                f"{BINPACK} keeps rows as they come: leave the order out, or say sort"
            )
        return Arrangement(order=None, sort_order_id=_UNSORTED)
    columns = _zorder(keys) or (keys if name == ZORDER and keys else None)
    if columns is not None:
        return _zordered(columns, metadata)
    if name == ZORDER:
        raise InvalidInput("z-order by which columns? Say zorder(a, b)")
    return _sorted(keys, metadata)


def _keys(order_by: Any) -> list[str]:
    """Return the keys of an order, a text with commas between them or one text each."""
    if order_by is None:
        return []
    given = [order_by] if isinstance(order_by, str) else texts(order_by, what="order_by")
    # Not those within parentheses.
    found = [key.strip() for each in given for key in re.split(r",(?![^(]*\))", each)]
    return [key for key in found if key]


def _zorder(keys: list[str]) -> list[str] | None:
    calls = [re.fullmatch(r"(?is)\s*zorder\s*\((.*)\)\s*", key) for key in keys]
    if not any(calls):
        return None
    if len(calls) > 1 or calls[0] is None:
        raise InvalidInput(f"z-order is by itself, with no other keys: {', '.join(keys)}")
    return [each.strip() for each in calls[0][1].split(",")]


def _zordered(columns: Iterable[str], metadata: TableMetadata) -> Arrangement:
    ids = []
    for each in columns:
        term = read_term(each, metadata.schema_json(), done="sort")
        if term.transform != "identity":
            raise InvalidInput(f"z-order is by columns, not by {each!r}")
        ids.append(term.source_ids[0])
    if len(set(ids)) < len(ids) or not ids:
        raise InvalidInput(f"z-order by {', '.join(columns)}: name each column once")
    order = ZOrdered(field_ids=tuple(ids), shape=metadata.shape())
    return Arrangement(order=order, sort_order_id=_UNSORTED)


def _sorted(keys: list[str], metadata: TableMetadata) -> Arrangement:
    if keys:
        fields: tuple[SortField, ...] = read_keys(keys, metadata.schema_json())
        known = [each.order_id for each in metadata.sort_orders if each.fields == fields]
        order_id = known[0] if known else _UNSORTED
        sort_keys = sort_keys_of(fields)
    else:
        sort_keys, order_id = metadata.sort_keys, metadata.default_sort_order_id
    if not sort_keys:
        raise InvalidInput("the table has no sort order: give one, such as 'ts desc, id'")
    return Arrangement(order=Sorted(keys=sort_keys, shape=metadata.shape()), sort_order_id=order_id)
