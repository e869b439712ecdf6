"""View metadata as files: what is not known is kept, what is broken is told by its rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.codec.view import decode, encode
from icetree.errors import CorruptTable, IcetreeError, Unsupported
from tests.golden.test_view_example import FIRST, SECOND, document

FILE = "m/00001-x.metadata.json"


def read(raw: Any) -> Any:
    return decode(json.dumps(raw).encode(), file=FILE)


def test_fields_that_are_not_known_are_written_back() -> None:
    raw = document(FIRST, SECOND)
    raw["owner"] = "ann"
    raw["versions"][0] = {**FIRST, "kind": "x"}
    raw["versions"][1] = {
        **SECOND,
        "representations": [*SECOND["representations"], {"type": "plan", "steps": [1, 2]}],
    }
    assert json.loads(encode(read(raw))) == raw


Edit = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        (lambda d: d.update({"format-version": 0}), "format-version 0 is not 1"),
        (lambda d: d.update({"format-version": "1"}), "format.version"),
        (lambda d: d.update({"view-uuid": "me"}), "view-uuid 'me' is none"),
        (lambda d: d.update({"location": ""}), "location is empty"),
        (lambda d: d.update({"location": "/a/../b"}), r"\.\."),
        (lambda d: d.update({"versions": []}), "there are no versions"),
        (lambda d: d.update({"versions": 1}), "versions is not a list"),
        (lambda d: d.update({"versions": [1]}), r"versions\[0\] is not an object"),
        (lambda d: d.update({"current-version-id": 9}), "9 is not among the versions"),
        (lambda d: d.update({"schemas": []}), "schema 1, which is not among"),
        (lambda d: d.update({"schemas": [{"type": "struct", "fields": []}]}), "no schema-id"),
        (lambda d: d.update({"schemas": [{"schema-id": 1, "fields": [{"id": 1}]}]}), "schema 1"),
        (lambda d: d.update({"schemas": d["schemas"] * 2}), "several schemas have schema-id '1'"),
        (lambda d: d["versions"].append(FIRST), "several versions have version-id '1'"),
        (lambda d: d["versions"][0].pop("default-namespace"), "default-namespace"),
        (lambda d: d["versions"][0].update(representations=[]), "no representations"),
        (lambda d: d["versions"][0].update(representations=[{"type": "sql"}]), "lacks its sql"),
        (
            lambda d: d["versions"][0].update(
                representations=[
                    {"type": "sql", "sql": "SELECT 1", "dialect": each} for each in ("spark", "Spark")
                ]
            ),
            "several queries have dialect 'spark'",
        ),
        (lambda d: d.update({"properties": {"a": 1}}), "properties"),
    ],
)  # fmt: skip
def test_metadata_that_breaks_a_rule_is_told_by_it(edit: Edit, rule: str) -> None:
    raw = json.loads(json.dumps(document(FIRST)))
    edit(raw)
    with pytest.raises(CorruptTable, match=rule) as told:
        read(raw)
    assert told.value.file == FILE


def test_a_view_of_a_later_version_is_told_so() -> None:
    with pytest.raises(Unsupported, match="v2 view"):
        read({**document(FIRST), "format-version": 2})


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"\x1f\x8bx", b'{"a": "\xff"}', b"[" * 5000])
def test_what_is_no_document_is_corrupt(raw: bytes) -> None:
    with pytest.raises(CorruptTable):
        decode(raw, file=FILE)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
PLACES = [(), ("versions", 0), ("versions", 0, "representations", 0), ("schemas", 0), ("version-log", 0)]  # fmt: skip


@given(place=st.sampled_from(PLACES), value=VALUES, pick=st.integers(0, 20))
def test_any_value_in_any_place_is_read_or_told_of(
    place: tuple[Any, ...], value: Any, pick: int
) -> None:
    raw = json.loads(json.dumps(document(FIRST)))
    at = raw
    for step in place:
        at = at[step]
    names = sorted(at)
    at[names[pick % len(names)]] = value
    try:
        found = read(raw)
    except IcetreeError:
        return
    assert decode(encode(found), file=FILE) == found
