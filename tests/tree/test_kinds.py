"""Which kinds of files a tree has, and how little is read to tell."""

from __future__ import annotations

from typing import Any

import pytest

from icetree.spec.entry import entry
from icetree.spec.entry.entry import Content, Status
from icetree.tree.changes import Operation
from icetree.tree.plan.kinds import Kinds, kinds, spec_ids
from icetree.tree.summary import FILE_FORMATS, summarise
from tests.tree.planning import SHAPE, Tree, data_dv, equality, one

TOLD = {FILE_FORMATS: "parquet"}
NONE: dict[str, Any] = {"equality_deletes": False, "position_delete_bytes": 0}


def kinds_of(tree: Tree, summary: dict[str, str] | None = None) -> Kinds:
    return kinds(entry.concat([entry.empty(), *tree.roots]), tree.shelf, summary)


def test_an_empty_tree_has_none() -> None:
    assert kinds_of(Tree()) == Kinds(formats=frozenset(), data_dvs=False, **NONE)


def test_no_leaf_is_read_where_the_summary_tells_the_formats() -> None:
    tree = Tree().add(one("a")).leaf("L", one("b")).leaf("D", data_dv("b"), target="L")
    found = kinds_of(tree, TOLD)
    assert found == Kinds(formats=frozenset({"parquet"}), data_dvs=True, **NONE)
    assert tree.shelf.reads == []


def test_leaves_tell_the_formats_where_the_summary_does_not() -> None:
    tree = Tree().add(one("a", file_format="orc"))
    tree.leaf("L", one("b", file_format="avro"), one("c", file_format="x", status=Status.DELETED))
    assert kinds_of(tree).formats == {"orc", "avro"}
    assert kinds_of(tree, {}).formats == {"orc", "avro"}
    assert kinds_of(tree, TOLD).formats == {"orc", "parquet"}


@pytest.mark.parametrize(
    "delete",
    [equality("e", 1, 2), one("p", content_type=Content.POSITION_DELETES, file_format="parquet")],
    ids=["equality", "position"],
)
def test_other_deletes_are_found_in_the_root_and_in_manifests_of_their_own(delete: Any) -> None:
    for tree in (Tree().add(one("a"), delete), Tree().add(one("a")).leaf("D", delete)):
        found = kinds_of(tree, TOLD)
        is_equality = delete.content_type == Content.EQUALITY_DELETES
        assert found.equality_deletes == is_equality
        assert (found.position_delete_bytes > 0) == (not is_equality)
        assert not found.data_dvs
    dvs = Tree().add(one("a")).leaf("D", data_dv("a"))
    assert kinds_of(dvs, TOLD) == Kinds(formats=frozenset({"parquet"}), data_dvs=True, **NONE)


def test_the_specs_of_files_that_are_there_are_told_and_no_others() -> None:
    tree = Tree().add(one("a", partition_spec_id=2))
    tree.leaf("L", one("b"), one("c", partition_spec_id=1, status=Status.DELETED))
    tree.leaf("D", equality("e", 1, 2, partition_spec_id=3))
    root = entry.concat([entry.empty(), *tree.roots])
    assert spec_ids(root, tree.shelf) == {0, 2}
    assert tree.shelf.reads == ["L"]
    assert spec_ids(entry.empty(), tree.shelf) == set()


def test_a_summary_tells_formats_as_long_as_every_commit_did() -> None:
    def after(previous: dict[str, str] | None, *formats: str) -> dict[str, str]:
        files = [one(name, file_format=name) for name in formats]
        added, none = entry.to_table(files, SHAPE), entry.to_table([], SHAPE)
        return summarise(
            Operation.APPEND, added, none, previous, manifests={}, changed_partitions=None
        )

    first = after(None, "parquet")
    assert first[FILE_FORMATS] == "parquet"
    assert after(first)[FILE_FORMATS] == "parquet"
    assert after(after(first, "orc"), "parquet")[FILE_FORMATS] == "orc,parquet"
    assert after(after(None), "parquet")[FILE_FORMATS] == "parquet"
    told_nothing = {key: value for key, value in first.items() if key != FILE_FORMATS}
    assert FILE_FORMATS not in after(told_nothing, "parquet")
