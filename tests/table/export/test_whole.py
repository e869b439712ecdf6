"""Files of exports that somebody deleted: verify tells, and exporting again makes them anew."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import pytest

from icetree.codec.legacy.encode_list import read_listed
from icetree.errors import AlreadyExists
from icetree.spec.location import absolute
from icetree.spec.metadata.snapshot import Snapshot
from icetree.store.base import Store
from icetree.table.export.export import export
from icetree.table.export.places import export_folder, manifest_list_at
from icetree.table.table import Table
from icetree.table.verify.findings import Kind, Severity
from tests.store.wrapped import Request, WrappedStore
from tests.table.changing import now, some
from tests.table.export.test_former import grown
from tests.table.export.test_lifetime import exports, require_whole

T = TypeVar("T")


def parts(table: Table) -> list[str]:
    return sorted(each for each in exports(table) if "/part-" in each)


def list_of(table: Table, snapshot: Snapshot, version: int = 3) -> str:
    return absolute(
        manifest_list_at(export_folder(table.location, version), snapshot), table.location
    )


def named(table: Table, snapshot: Snapshot, version: int = 3) -> list[str]:
    at = list_of(table, snapshot, version)
    return [each.location for each in read_listed(table.files.store.read(at), file=at)]


def newest(table: Table) -> Snapshot:
    found = table.current_snapshot
    assert found is not None
    return found


@pytest.mark.parametrize("version", [3, 2])
def test_verify_tells_of_what_an_export_names_and_is_gone(version: int) -> None:
    table = grown(4)
    table.export(format_version=version, history=True)
    assert table.verify().is_clean
    gone = parts(table)[0]
    having = [each for each in table.history() if gone in named(table, each, version)]
    table.files.store.delete([gone])
    [finding] = table.verify().findings
    assert (finding.kind, finding.severity) == (Kind.LOST_EXPORT, Severity.WARNING)
    assert gone.endswith(finding.file)
    assert finding.snapshots == len(having) > 0
    assert "export" in finding.rule


def test_verify_tells_of_a_part_that_is_another_or_a_list_that_cannot_be_read() -> None:
    table = grown(3)
    table.export()
    store = table.files.store
    broken = parts(table)[0]
    store.delete([broken])
    store.write_new(broken, b"short")
    [finding] = table.verify().findings
    assert finding.kind is Kind.LOST_EXPORT
    assert broken.endswith(finding.file)
    at = list_of(table, newest(table))
    store.delete([at])
    store.write_new(at, b"no list")
    [finding] = table.verify().findings
    assert finding.kind is Kind.LOST_EXPORT
    assert at.endswith(finding.file)
    table.export()
    assert table.verify().is_clean
    require_whole(table, now(table))
    assert table.files.store.size(broken) > len(b"short")


def test_a_part_that_an_older_list_names_is_not_taken_for_there_when_it_is_gone() -> None:
    table = grown(4)
    table.export()
    table.files.store.delete(parts(table))
    table.append(some((9, "z")))
    told = table.export()
    assert any("/part-" in each for each in told.written)
    require_whole(table, now(table))


def test_exporting_again_makes_what_is_gone_for_all_who_name_it() -> None:
    table = grown(5)
    table.export(history=True)
    whole = {each for each in exports(table) if each.endswith(".avro")}
    own = [each for each in named(table, newest(table)) if "/snap-" in each]
    table.files.store.delete([*parts(table)[:2], *own])
    assert not table.verify().is_clean
    table.export(history=True)
    assert {each for each in exports(table) if each.endswith(".avro")} == whole
    assert table.verify().is_clean
    for each in table.history():
        require_whole(table, each.snapshot_id)


def test_what_is_whole_is_neither_written_nor_deleted_again() -> None:
    table = grown(4)
    table.export(history=True)
    before = {each.location: each for each in table.files.store.list(table.location)}
    table.export(history=True)
    assert {each.location: each for each in table.files.store.list(table.location)} == before


class _Mended(WrappedStore):
    """A store in which another puts a file right at a moment when one looks at it."""

    def __init__(self, store: Store, at: str, content: bytes, moment: str) -> None:
        super().__init__(store)
        self._at, self._content, self._moment = at, content, moment

    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        if (request.location, request.operation) != (self._at, self._moment):
            return effect()
        self._moment = ""
        self.store.delete([self._at])
        try:
            return effect()
        finally:
            with suppress(AlreadyExists):
                self.store.write_new(self._at, self._content)


@pytest.mark.parametrize("moment", ["size", "read", "write_new"])
def test_two_who_put_the_same_part_right_do_not_stop_each_other(moment: str) -> None:
    table = grown(3)
    table.export()
    store = table.files.store
    broken = parts(table)[0]
    content = store.read(broken)
    store.delete([broken, list_of(table, newest(table))])
    store.write_new(broken, b"short")
    files = replace(table.files, store=_Mended(store, broken, content, moment))
    export(table.state, files, newest(table), mends=True)
    require_whole(table, now(table))
    assert table.verify().is_clean
