"""JSON as anyone may write it: members in any order, escapes, white space, and members of one's own."""

from __future__ import annotations

import gzip
import json
from random import Random
from typing import Any

from tests.foreign.columns import Json

#: What files of gzip begin with.
GZIP = b"\x1f\x8b"

#: A member that nobody but this writer knows.
MINE = "made-by"
#: Objects that are maps: whatever they hold has a meaning.
_MAPS = ("refs", "properties", "summary")


def marked(value: Any, rng: Random, *, is_map: bool = False) -> Any:
    """Return a document that says more than readers know of, anywhere in it."""
    if isinstance(value, list):
        return [marked(each, rng) for each in value]
    if not isinstance(value, dict):
        return value
    found = {
        name: each if name in ("properties", "summary") else marked(each, rng, is_map=name in _MAPS)
        for name, each in value.items()
    }
    if not is_map and rng.random() < 0.3:
        found[MINE] = rng.choice(("another", 7, None, [1, {"fields": None}], {"snapshot-id": "x"}))
    return found


def spelled(document: Json, rng: Random) -> bytes:
    """Return a document's bytes."""
    space = rng.choice(("", "", " ", "\n\t"))
    return (space + _text(document, rng, space) + space).encode()


def _text(value: Any, rng: Random, space: str) -> str:
    comma, colon = f"{space},{space}", f"{space}:{space}"
    match value:
        case dict():
            pairs = rng.sample(list(value.items()), len(value))
            told = (f"{_quoted(n, rng)}{colon}{_text(v, rng, space)}" for n, v in pairs)
            return "{" + space + comma.join(told) + space + "}"
        case list():
            return "[" + space + comma.join(_text(each, rng, space) for each in value) + "]"
        case str():
            return _quoted(value, rng)
    return json.dumps(value)


def _quoted(text: str, rng: Random) -> str:
    """Return a text in quotes, now and then with more escapes than it needs."""
    plain = json.dumps(text, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.9:
        return plain
    units = text.encode("utf-16-be", "surrogatepass")
    return '"' + "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)) + '"'


def document(content: bytes) -> Json:
    """Return what a file of metadata has."""
    found: Json = json.loads(gzip.decompress(content) if content[:2] == GZIP else content)
    return found


def marks(told: Json) -> dict[str, Any]:
    """Return what only the other writer knows of a table, by where it stands; of history nothing."""
    found: dict[str, Any] = {}
    if MINE in told:
        found["table"] = told[MINE]
    for name, id in (
        ("schemas", "schema-id"),
        ("partition-specs", "spec-id"),
        ("sort-orders", "order-id"),
        ("expressions", "expr-id"),
    ):
        for each in told.get(name, []):
            _mark(found, f"{name} {each[id]}", each)
    return found


def _mark(found: dict[str, Any], where: str, value: Any) -> None:
    match value:
        case dict():
            for name, each in value.items():
                if name == MINE:
                    found[where] = each
                else:
                    _mark(found, f"{where}.{name}", each)
        case list():
            for at, each in enumerate(value):
                _mark(found, f"{where}[{at}]", each)
