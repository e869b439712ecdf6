"""Planning: what a scan of a tree gives, against a flat list of the same files."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyiceberg import expressions as ice
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import IntegerType
from pyroaring import BitMap

from icetree.codec import puffin
from icetree.errors import CorruptTable, InvalidInput
from icetree.spec.entry.entry import Content, Entry, Status, to_table
from icetree.spec.entry.stats import FieldStats, parse_column
from icetree.tree.plan.tasks import DELETES, TASK
from tests.tree import rows as r
from tests.tree.planning import SHAPE, I, Tree, data_dv, deletes_of, equality, gone, locations, one

#: What spec 1 is partitioned by: four buckets of `i`.
BUCKET = 101


def in_bucket(of: Entry, value: int | None = None) -> Entry:
    """The entry in a partition of spec 1: the one of its least `i`, unless a value is given."""
    value = of.stats[I].lower if value is None else value
    bucket = BucketTransform(4).transform(IntegerType())(value)
    known = FieldStats(lower=bucket, upper=bucket, values=10, nulls=0)
    return replace(of, partition_spec_id=1, stats={**of.stats, BUCKET: known})


def test_an_empty_root_plans_to_nothing() -> None:
    found = Tree().plan(ice.EqualTo("i", 1))
    assert found.tasks.num_rows == 0
    assert found.tasks.schema.names == TASK.names
    assert found.tasks.schema.types == TASK.types
    assert found.deletes.schema.equals(DELETES)


def test_files_of_root_and_leaves_come_with_where_they_are() -> None:
    tree = Tree().add(one("a"), one("dead", status=Status.DELETED))
    tree.leaf("L", one("b"), one("dead too", status=Status.DELETED), one("c"))
    found = tree.plan()
    assert locations(found) == ["a", "b", "c"]
    assert found.tasks["leaf"].to_pylist() == [None, "L", "L"]
    assert found.tasks["position"].to_pylist() == [None, 0, 2]
    assert found.tasks.schema.types == TASK.types
    assert found.residuals == [ice.AlwaysTrue()]


def test_a_leaf_that_cannot_match_is_not_read() -> None:
    tree = Tree().add(one("a", 1), one("b", 50))
    tree.leaf("low", one("c", 1), one("d", 9)).leaf("high", one("e", 40), one("f", 60))
    found = tree.plan(ice.GreaterThan("i", 45))
    assert locations(found) == ["b", "f"]
    assert tree.shelf.reads == ["high"]
    assert found.metrics.data_leaves_skipped == 1
    assert found.metrics.data_leaves_read == 1
    assert found.metrics.root_entries_scanned == 4
    assert found.metrics.root_entries_skipped == 2
    assert found.metrics.leaf_entries_scanned == 2
    assert found.metrics.leaf_entries_skipped == 1
    assert found.metrics.data_files == 2


def test_row_groups_that_cannot_match_are_skipped_and_positions_stay_true() -> None:
    tree = Tree().leaf("L", *(one(f"f{n}", n * 10) for n in range(8))).add(gone("L", [5]))
    found = tree.plan(ice.GreaterThanOrEqual("i", 40))
    assert locations(found) == ["f4", "f6", "f7"]
    assert found.tasks["position"].to_pylist() == [4, 6, 7]
    assert found.metrics.leaf_entries_scanned == 4


def test_only_columns_that_planning_uses_are_read() -> None:
    wide = one("a", stats={I: FieldStats(lower=1), r.IDS["s"]: FieldStats(lower="x")})
    tree = Tree().leaf("L", wide)
    tree.plan(ice.EqualTo("i", 1))
    read = tree.shelf.columns["L"]
    assert read is not None
    assert {parse_column(name)[0] for name in read if parse_column(name)} >= {I}
    assert not any(name.startswith(f"{r.IDS['s']}:") for name in read)
    tree.plan(ice.EqualTo("i", 1), stats_columns=True)
    assert tree.shelf.columns["L"] is None


def test_stats_come_along_when_asked_for() -> None:
    found = Tree().add(one("a", 3)).leaf("L", one("b", 4)).plan(stats_columns=True)
    assert found.tasks[f"{I}:lower"].to_pylist() == [3, 4]


def test_entries_a_manifest_dv_removes_are_left_out() -> None:
    tree = Tree().leaf("L", one("a"), one("b"), one("c")).add(gone("L", [0, 2]))
    assert locations(tree.plan()) == ["b"]


def test_a_leaf_with_more_entries_than_its_root_says_is_corrupt() -> None:
    tree = Tree().leaf("L", one("a"), one("b")).add(gone("L", [0]))
    tree.shelf.leaves["L"] = to_table([one("a"), one("b"), one("c")], SHAPE)
    with pytest.raises(CorruptTable, match="L: more entries than the root says: 2"):
        tree.plan()


def test_a_manifest_dv_may_be_in_puffin() -> None:
    blob = puffin.encode_dv(BitMap([1]))
    tree = Tree().leaf("L", one("a"), one("b"))
    tree.add(
        gone(
            "L",
            [1],
            location="v.puffin",
            dv_inline_content=None,
            dv_offset=3,
            dv_size_in_bytes=len(blob),
        )
    )
    tree.shelf.blobs["v.puffin"] = b"xxx" + blob
    assert locations(tree.plan()) == ["a"]


def test_data_dvs_join_their_files_wherever_they_are_tracked() -> None:
    tree = Tree().add(one("a"), one("b"), data_dv("a"))
    tree.leaf("L", one("c"), one("d"), one("e"))
    tree.leaf("affiliated", data_dv("c"), target="L").leaf("apart", data_dv("d"), data_dv("b"))
    found = tree.plan()
    assert locations(found) == ["a", "b", "c", "d", "e"]
    assert found.tasks["dv_location"].to_pylist() == ["dv-a", "dv-b", "dv-c", "dv-d", None]
    assert found.tasks["dv_cardinality"].to_pylist() == [3, 3, 3, 3, None]
    assert found.metrics.dvs == 4
    assert found.metrics.delete_leaves_read == 2


def test_an_affiliated_delete_manifest_is_skipped_with_its_data_manifest() -> None:
    tree = Tree().leaf("low", one("a", 1)).leaf("high", one("b", 50))
    tree.leaf("low-d", data_dv("a"), target="low").leaf("high-d", data_dv("b"), target="high")
    found = tree.plan(ice.EqualTo("i", 50))
    assert tree.shelf.reads == ["high-d", "high"]
    assert found.tasks["dv_location"].to_pylist() == ["dv-b"]
    assert found.metrics.delete_leaves_skipped == 1


def test_an_unaffiliated_delete_manifest_is_skipped_by_what_every_spec_is_partitioned_by() -> None:
    tree = Tree(shape=replace(SHAPE, specs={1: (BUCKET,)}))
    tree.leaf("L", in_bucket(one("a", 7)), in_bucket(one("b", 50)))
    tree.leaf("far", in_bucket(data_dv("a"), 7), in_bucket(equality("far-eq", 50, 51), 7))
    tree.leaf("near", in_bucket(data_dv("b"), 50), in_bucket(equality("near-eq", 50, 51), 50))
    found = tree.plan(ice.EqualTo("i", 50))
    assert tree.shelf.reads == ["near", "L"]
    assert deletes_of(found, "equality_deletes") == {"b": ["near-eq"]}
    assert found.tasks["dv_location"].to_pylist() == ["dv-b"]


@pytest.mark.parametrize("in_leaf", [False, True])
@pytest.mark.parametrize("size", [1, 3])
def test_stats_of_what_an_equality_delete_does_not_compare_never_skip_it(
    in_leaf: bool, size: int
) -> None:
    """Rows that it deletes may have any value there: to skip it would bring them back."""
    tree = Tree().add(one("a", 50))
    loose = [equality(f"eq{at}", 900, 901, equality_ids=(r.IDS["s"],)) for at in range(size)]
    tree = tree.leaf("D", *loose) if in_leaf else tree.add(*loose)
    found = tree.plan(ice.EqualTo("i", 50))
    assert deletes_of(found, "equality_deletes") == {"a": [f"eq{at}" for at in range(size)]}


@pytest.mark.parametrize("in_leaf", [False, True])
@pytest.mark.parametrize("size", [1, 3])
def test_stats_of_another_specs_partitions_never_skip_an_equality_delete(
    in_leaf: bool, size: int
) -> None:
    """It is of the unpartitioned spec, hence in every partition."""
    tree = Tree().add(in_bucket(one("a", 50)))
    loose = [
        replace(in_bucket(equality(f"eq{at}", 1, 99), 900), partition_spec_id=0)
        for at in range(size)
    ]
    tree = tree.leaf("D", *loose) if in_leaf else tree.add(*loose)
    found = tree.plan(ice.EqualTo("i", 50))
    assert deletes_of(found, "equality_deletes") == {"a": [f"eq{at}" for at in range(size)]}


def test_an_equality_delete_is_skipped_by_what_it_compares_and_by_its_partition() -> None:
    tree = Tree().add(in_bucket(one("a", 50)))
    tree.add(in_bucket(equality("far", 900, 901), 50), in_bucket(equality("near", 49, 50), 50))
    tree.add(in_bucket(equality("elsewhere", 49, 50), 900))
    tree.leaf("D", in_bucket(equality("far too", 900, 901), 50), equality("global", 50, 50))
    found = tree.plan(ice.EqualTo("i", 50))
    assert deletes_of(found, "equality_deletes") == {"a": ["near", "global"]}


def test_no_delete_is_read_when_no_data_can_match() -> None:
    tree = Tree().leaf("L", one("a", 1)).leaf("D", equality("d", 1, 99), data_dv("a"))
    assert tree.plan(ice.EqualTo("i", 7)).tasks.num_rows == 0
    assert tree.shelf.reads == []


def test_removed_and_replaced_deletes_do_not_count() -> None:
    tree = Tree().leaf("L", one("a"))
    tree.leaf("D", data_dv("a", name="old"), equality("eq", 1, 2)).add(
        gone("D", [0, 1]),
        data_dv("a", name="new"),
        data_dv("a", name="dead", status=Status.DELETED),
    )
    found = tree.plan()
    assert found.tasks["dv_location"].to_pylist() == ["new"]
    assert found.deletes.num_rows == 0


def test_two_data_dvs_on_one_file_are_corrupt() -> None:
    tree = Tree().add(one("a"), data_dv("a", name="v1")).leaf("D", data_dv("a", name="v2"))
    with pytest.raises(CorruptTable, match="top: data file a has two deletion vectors"):
        tree.plan(root_file="top")


def test_an_affiliated_manifest_may_not_hold_what_applies_elsewhere() -> None:
    tree = Tree().leaf("L", one("a")).leaf("D", equality("eq", 1, 2), target="L")
    with pytest.raises(CorruptTable, match="D: an affiliated delete manifest"):
        tree.plan()


def test_equality_deletes_are_listed_once_and_pointed_to() -> None:
    tree = Tree().add(one("old", 1, 9), one("young", 1, 9, sequence_number=5))
    tree.add(equality("unused", 70, 71), equality("e1", 2, 3), equality("e2", 9, 30))
    tree.leaf("L", one("also old", 8, 20))
    found = tree.plan()
    assert deletes_of(found, "equality_deletes") == {
        "old": ["e1", "e2"],
        "young": [],
        "also old": ["e2"],
    }
    assert found.deletes["location"].to_pylist() == ["e1", "e2"]
    assert found.deletes["equality_ids"].to_pylist() == [[I], [I]]
    assert found.metrics.delete_files == 2


def test_a_predicate_drops_equality_deletes_of_other_values() -> None:
    tree = Tree().add(one("a", 1, 100), equality("e1", 2, 3), equality("e2", 50, 60))
    found = tree.plan(ice.EqualTo("i", 55))
    assert deletes_of(found, "equality_deletes") == {"a": ["e2"]}


def test_old_position_deletes_come_after_equality_deletes_and_yield_to_a_dv() -> None:
    old = {"content_type": Content.POSITION_DELETES, "sequence_number": 3}
    tree = Tree().add(one("a", 1), one("b", 1), data_dv("b"), equality("eq", 1, 1))
    tree.leaf("old", one("pos", **old), one("pos-b", referenced_file="b", **old))
    found = tree.plan()
    assert deletes_of(found, "position_deletes") == {"a": ["pos"], "b": []}
    assert deletes_of(found, "equality_deletes") == {"a": ["eq"], "b": ["eq"]}
    assert found.deletes["content_type"].to_pylist() == [
        Content.EQUALITY_DELETES,
        Content.POSITION_DELETES,
    ]


def test_partition_scoped_deletes_find_their_bucket_in_leaves() -> None:
    bucket = {101: FieldStats(lower=2, upper=2, values=10, nulls=0)}
    other = {101: FieldStats(lower=3, upper=3, values=10, nulls=0)}
    tree = Tree().leaf(
        "L", one("a", partition_spec_id=1, stats=bucket), one("b", partition_spec_id=1, stats=other)
    )
    tree.add(
        one(
            "eq",
            content_type=Content.EQUALITY_DELETES,
            equality_ids=(I,),
            sequence_number=5,
            partition_spec_id=1,
            stats=bucket,
        )
    )
    assert deletes_of(tree.plan(), "equality_deletes") == {"a": ["eq"], "b": []}


def test_each_task_has_its_residual() -> None:
    tree = Tree().add(one("in", 6, 7), one("across", 1, 9))
    predicate = ice.GreaterThan("i", 5)
    found = tree.plan(predicate)
    left = [found.residuals[at] for at in found.tasks["residual"].to_pylist()]
    assert left == [ice.AlwaysTrue(), predicate]


def test_a_predicate_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no column 'I'"):
        Tree().plan(ice.EqualTo("I", 1))
    assert Tree().plan(ice.EqualTo("I", 1), case_sensitive=False).tasks.num_rows == 0
