"""Tables that are folders: `metadata/v3.metadata.json` is the third version, and a hint names it.

Whoever writes the next number first has committed, and nothing but the numbers says which version is
the newest. So a table that leaves such a folder for a catalog leaves a mark under the next number:
it names where the table went on, and is no metadata that any reader takes for one.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from typing import Final

from icetree.codec.nouns import document
from icetree.errors import AlreadyExists, CorruptTable, InvalidInput, NotFound
from icetree.spec.location import absolute, prefix_of, stored_form
from icetree.spec.texts import json_bytes
from icetree.store.base import Store

_HINT: Final = "version-hint.text"
_NUMBERED: Final = re.compile(r"v(\d+)(?:\.gz)?\.metadata\.json(?:\.gz)?")
#: Metadata as catalogs have it named.
_COUNTED: Final = re.compile(r"(\d+)-.*\.metadata\.json")
#: A number may be written in any of these ways.
_NAMES: Final = ("v{}.metadata.json", "v{}.gz.metadata.json", "v{}.metadata.json.gz")
#: In a mark: the metadata file that the table went on with, relative to its folder.
_MOVED_TO: Final = "moved-to"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The newest version of a table that is a folder."""

    number: int
    #: Absolute: the table's metadata, or the mark that it left.
    location: str


def newest_version(folder: str, store: Store) -> Version:
    """Return the newest version; NotFound where the folder has none."""
    base = f"{prefix_of(folder)}metadata/"
    number = _hinted(base, store)
    if number is None or _at(base, number, store) is None:
        number = _listed(base, store)
    if number is None:
        raise NotFound(
            f"{folder} is no table: it has no metadata/{_NAMES[0].format('N')}; give the folder of "
            "one, or the location of a metadata file"
        )
    # The hint is written after the version, or never.
    while _at(base, number + 1, store) is not None:
        number += 1
    found = _at(base, number, store)
    assert found is not None
    return Version(number=number, location=found)


def moved_to(version: Version, folder: str, store: Store) -> str | None:
    """Return the metadata file that a table went on with when it left its folder, if it did."""
    try:
        found = document(store.read(version.location), file=version.location).get(_MOVED_TO)
    except CorruptTable:
        return None
    return absolute(found, folder) if isinstance(found, str) else None


def require_newest(moved: str, store: Store) -> None:
    """Refuse metadata that its table, once upgraded, has gone on from: a catalog has it."""
    base, _, name = moved.rpartition("/")
    number = _COUNTED.match(name)
    for each in store.list(base) if number else ():
        other = _COUNTED.match(each.location.rpartition("/")[2])
        if number and other and int(other[1]) > int(number[1]):
            raise InvalidInput(
                f"this table was upgraded, and has gone on since: register {each.location}, or "
                "the newest of its kind, by register_table"
            )


def mark_moved(version: Version, folder: str, to: str, store: Store) -> bool:
    """Leave the mark that the table went on elsewhere; False where another version came first."""
    base, next_number = f"{prefix_of(folder)}metadata/", version.number + 1
    # Named and packed as the one before, so that whoever writes the next as well meets this one.
    name = version.location.rpartition("/")[2]
    name = name.replace(f"v{version.number}.", f"v{next_number}.", 1)
    mark = {
        "format-version": 4,
        _MOVED_TO: stored_form(to, folder),
        "message": "this table is version 4 now: open it through its catalog",
    }
    if _at(base, next_number, store) is not None:
        return False
    content = json_bytes(mark)
    try:
        store.write_new(base + name, gzip.compress(content) if "gz" in name else content)
    except AlreadyExists:
        return False
    return True


def _hinted(base: str, store: Store) -> int | None:
    try:
        hint = store.read(base + _HINT)
    except NotFound:
        return None
    text = hint[:20].decode("ascii", "replace").strip()
    return int(text) if text.isdecimal() and text.isascii() else None


def _listed(base: str, store: Store) -> int | None:
    names = (each.location.rpartition("/")[2] for each in store.list(base.rstrip("/")))
    found = (_NUMBERED.fullmatch(name) for name in names)
    return max((int(each[1]) for each in found if each), default=None)


def _at(base: str, number: int, store: Store) -> str | None:
    places = (base + name.format(number) for name in _NAMES)
    return next((each for each in places if store.exists(each)), None)
