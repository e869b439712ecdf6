"""Table properties when they are set: each is held to what will read it.

A value that nothing could work with is refused here, not by the commit or the scan that meets it.
Any name may be set, as Iceberg has it, but one that is nearly a known one is a slip of the hand:
one that begins with a word of ours or nearly so, and as a whole is nearly a name of ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

from icetree.errors import InvalidInput
from icetree.rows.formats import avro as as_avro
from icetree.rows.formats import formats
from icetree.rows.formats import orc as as_orc
from icetree.rows.formats import parquet as as_parquet
from icetree.rows.matching.source import SOURCE_LIMIT
from icetree.rows.read import files as reading
from icetree.rows.write import write as writing
from icetree.rows.write.layout import DATA_PATH
from icetree.spec.entry import metrics
from icetree.spec.location import is_relative, leads_up, no_name
from icetree.spec.metadata import retention
from icetree.spec.metadata.encryption import KEY_BYTES_PROPERTY, KEY_PROPERTY, data_key_bytes
from icetree.spec.metadata.metadata import (
    DELETE_AFTER_COMMIT,
    INLINE_SNAPSHOTS,
    PREVIOUS_VERSIONS,
    TableMetadata,
)
from icetree.spec.properties.names import (
    CLOSED,
    CLOSED_OF_OTHERS,
    DELETE_FILE_SIZE,
    DISTRIBUTION,
    DISTRIBUTIONS,
    EXPORT_ON_COMMIT,
    ISOLATION,
    METADATA_COMPRESSION,
    METADATA_COMPRESSIONS,
    METADATA_PATH,
    MODE,
    MODES,
    REBASE_APPENDS,
    RESERVED,
    VERBS,
    WAP_ENABLED,
    is_of_others,
)
from icetree.spec.properties.values import choice, flag, whole_number
from icetree.spec.texts import did_you_mean
from icetree.table.commit import backoff
from icetree.table.commit.adding import CONFINED
from icetree.tree import policy, splits
from icetree.tree.conflict.conflict import Isolation

Read = Callable[[Mapping[str, str]], Any]

#: So alike that one must have been meant.
_NEAR: Final = 0.86
#: First words of ours, and how alike another must be to be meant as one: alone it says little. Of `gc`
#: a letter makes another word.
_FIRST: Final = tuple(each.rstrip(".") for each in RESERVED)
_LONG: Final = tuple(each for each in _FIRST if len(each) > 2)
_NEAR_FIRST: Final = 0.75
_WORD_END: Final = re.compile("[._-]")


def _word(name: str, allowed: tuple[str, ...]) -> Read:
    return partial(choice, name=name, allowed=allowed, default=allowed[0])


def _number(name: str, least: int = 1) -> Read:
    return partial(whole_number, name=name, default=least, least=least)


def _mode(properties: Mapping[str, str]) -> object:
    return metrics.parse_mode(properties[metrics.DEFAULT], name=metrics.DEFAULT)


def _path(properties: Mapping[str, str], name: str) -> None:
    place = properties[name]
    if leads_up(place):
        raise InvalidInput(f"{name}: {no_name(place)}")
    if is_relative(place):
        raise InvalidInput(
            f"{name}={place!r} is relative, which clients read differently: give the folder in full, "
            "such as s3://bucket/folder"
        )


#: What reads each property, and refuses what it cannot mean.
_READERS: Final[Mapping[str, Read]] = {
    **dict.fromkeys(policy.NAMES, policy.policy_of),
    **dict.fromkeys(backoff.TRIES, backoff.between_tries),
    **dict.fromkeys(backoff.QUESTIONS, backoff.between_questions),
    **dict.fromkeys(
        (splits.TARGET_BYTES, splits.OPEN_COST_BYTES, splits.LOOKBACK), splits.sizes_of
    ),
    **dict.fromkeys((as_parquet.CODEC, as_parquet.LEVEL), as_parquet.codec_of),
    **dict.fromkeys((as_avro.CODEC, as_avro.LEVEL), as_avro.codec_of),
    **{name: _word(name, formats.NAMES) for name in (formats.WRITE_FORMAT, formats.DELETE_FORMAT)},
    **{MODE.format(verb): _word(MODE.format(verb), MODES) for verb in VERBS},
    **{
        ISOLATION.format(verb): _word(ISOLATION.format(verb), tuple(x.value for x in Isolation))
        for verb in VERBS
    },
    **{
        name: partial(flag, name=name, default=False)
        for name in (
            CONFINED,
            DELETE_AFTER_COMMIT,
            EXPORT_ON_COMMIT,
            REBASE_APPENDS,
            WAP_ENABLED,
            metrics.SHRED_VARIANTS,
            reading.CHECKSUMS,
            *retention.GARBAGE,
        )
    },
    **{
        name: _number(name)
        for name in (
            writing.TARGET_FILE_SIZE,
            as_parquet.ROW_GROUP_LIMIT,
            as_parquet.ROW_GROUP_SIZE,
            as_orc.STRIPE_SIZE,
            as_orc.BLOCK_SIZE,
            SOURCE_LIMIT,
            DELETE_FILE_SIZE,
            INLINE_SNAPSHOTS,
            PREVIOUS_VERSIONS,
            retention.MAX_SNAPSHOT_AGE,
            retention.MIN_SNAPSHOTS,
            retention.MAX_REF_AGE,
        )
    },
    metrics.DEFAULT: _mode,
    metrics.MAX_INFERRED: _number(metrics.MAX_INFERRED, least=0),
    reading.NAME_MAPPING: reading.name_mapping,
    **{name: partial(_path, name=name) for name in (DATA_PATH, METADATA_PATH)},
    as_orc.CODEC: _word(as_orc.CODEC, as_orc.CODECS),
    as_orc.STRATEGY: _word(as_orc.STRATEGY, as_orc.STRATEGIES),
    DISTRIBUTION: _word(DISTRIBUTION, DISTRIBUTIONS),
    METADATA_COMPRESSION: _word(METADATA_COMPRESSION, METADATA_COMPRESSIONS),
    KEY_PROPERTY: lambda _: None,
    KEY_BYTES_PROPERTY: lambda given: data_key_bytes({KEY_PROPERTY: "any", **given}),
}

#: Codecs and their levels, which are read together.
_LEVELS: Final = {
    name: frozenset({each.CODEC, each.LEVEL})
    for each in (as_parquet, as_avro)
    for name in (each.CODEC, each.LEVEL)
}

#: How many words the name of a single column's setting begins with.
_LEADING: Final = metrics.COLUMN_PREFIX.count(".")

#: Every property that icetree reads, but for those of single columns.
KNOWN: Final = frozenset(_READERS)


def check_properties(given: Mapping[str, str], after: TableMetadata) -> None:
    """Refuse properties that are being set and could not be what is meant; InvalidInput.

    `after` is the table as it would be. Properties that it had before are left alone.
    """
    for name, value in given.items():
        if name in _READERS:
            # A level is that of a codec, which may have been set before.
            about = _LEVELS.get(name, frozenset()) & after.properties.keys()
            _READERS[name]({**{each: after.properties[each] for each in about}, name: value})
        elif name.startswith(metrics.COLUMN_PREFIX):
            _check_column(name, value, after)
        elif name.casefold().startswith(CLOSED) and name not in CLOSED_OF_OTHERS:
            raise InvalidInput(f"there is no table property {name!r}{_of_family(name)}")
        elif not is_of_others(name) and (near := _nearly(name)) is not None:
            raise InvalidInput(f"there is no table property {name!r}; did you mean {near!r}?")


def _of_family(name: str) -> str:
    """Return a hint at the properties that there are in a family of which all are known."""
    family = next(each for each in CLOSED if name.casefold().startswith(each))
    known = sorted(each for each in (*KNOWN, *CLOSED_OF_OTHERS) if each.startswith(family))
    return did_you_mean(name, known) or f"; there are {', '.join(known)}"


def _nearly(name: str) -> str | None:
    """Return the property of ours that a name is a slip of; None for a name of somebody's own."""
    said = name.casefold()
    first = _WORD_END.split(said)[0]
    if first not in _FIRST and not get_close_matches(first, _LONG, n=1, cutoff=_NEAR_FIRST):
        return None
    # What is after it names a column of the table.
    head, column = said.split(".")[:_LEADING], name.split(".")[_LEADING:]
    if column and get_close_matches(".".join(head), [metrics.COLUMN_PREFIX], cutoff=_NEAR):
        return metrics.COLUMN_PREFIX + ".".join(column)
    near = get_close_matches(said, KNOWN, n=1, cutoff=_NEAR)
    return near[0] if near else None


def _check_column(name: str, value: str, after: TableMetadata) -> None:
    metrics.parse_mode(value, name=name)
    column = name.removeprefix(metrics.COLUMN_PREFIX)
    columns = after.schema().column_names
    if column not in columns:
        raise InvalidInput(f"{name}: there is no column {column!r}{did_you_mean(column, columns)}")
