"""Manifests and lists that are read as one come out as each by itself."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.codec import legacy
from icetree.codec.inherit import Inherited
from icetree.codec.legacy.encode_list import COUNTS, Listed, encode_manifest_list
from icetree.codec.legacy.encode_manifest import encode_manifest
from icetree.errors import CorruptTable
from icetree.spec.entry.entry import DATA, DELETE, Content, Entries, with_columns
from tests.codec.test_legacy_encode import LOCATION, layout, stats_that_count, with_numbers
from tests.effort import law
from tests.laws.leaves import EVERY_TYPE
from tests.laws.manifests import manifests
from tests.laws.same import require_same

KINDS = {DATA: Content.DATA_MANIFEST, DELETE: Content.DELETE_MANIFEST}


def made(entries: Entries) -> bytes:
    entries = with_columns(entries, partition_spec_id=0, sequence_number=5, file_sequence_number=5)
    return encode_manifest(with_numbers(stats_that_count(entries)), layout(EVERY_TYPE)).content


def test_manifests_read_together_are_as_each_alone() -> None:
    @law(20, usual=8)
    @given(
        *(manifests(kind, 9) for kind in KINDS),
        st.lists(st.integers(0, 9), max_size=4).map(lambda cuts: sorted({0, *cuts, 9})),
        st.randoms(use_true_random=False),
    )
    def holds(data: Entries, deletes: Entries, cuts: list[int], chance: object) -> None:
        several = [
            (made(entries.slice(start, end - start)), content)
            for entries, content in zip((data, deletes), KINDS.values(), strict=True)
            for start, end in pairwise(cuts)
        ]
        chance.shuffle(several)  # type: ignore[attr-defined]
        told = [
            (
                f"{at}.avro",
                file,
                Inherited(content_type=content, snapshot_id=at, sequence_number=at),
            )
            for at, (file, content) in enumerate(several)
        ]
        found = legacy.decode_manifests(told, shape=EVERY_TYPE, table_location=LOCATION)
        assert len(found) == len(told)
        for each, (file, content, inherited) in zip(found, told, strict=True):
            alone = legacy.decode_manifest(
                content, file=file, shape=EVERY_TYPE, table_location=LOCATION, inherit=inherited
            )
            require_same(each, alone)

    holds()


def listed(*names: str, snapshot_id: int) -> Listed:
    return Listed(
        location=f"{LOCATION}/metadata/{'-'.join(names)}",
        size_bytes=len(names),
        spec_id=0,
        holds_data=snapshot_id % 2 == 0,
        sequence_number=snapshot_id,
        min_sequence_number=1,
        snapshot_id=snapshot_id,
        counts=dict.fromkeys(COUNTS, snapshot_id),
        partitions=None,
    )


def test_lists_read_together_are_as_each_alone() -> None:
    lists = {
        f"{at}-{version}.avro": encode_manifest_list(
            [listed(str(at), str(each), snapshot_id=each) for each in range(at)],
            {"snapshot-id": str(at)},
            format_version=version,
        )
        for at in range(4)
        for version in (2, 3)
    }
    found = legacy.decode_manifest_lists(lists, shape=EVERY_TYPE, table_location=LOCATION)
    assert {*found} == {*lists}
    for name, content in lists.items():
        alone = legacy.decode_manifest_list(
            content, file=name, shape=EVERY_TYPE, table_location=LOCATION
        )
        require_same(found[name], alone)


def test_one_that_is_broken_is_told_of() -> None:
    whole = encode_manifest_list([listed("a", snapshot_id=1)], {}, format_version=3)
    lists = {"good.avro": whole, "bad.avro": whole[:-20]}
    with pytest.raises(CorruptTable):
        legacy.decode_manifest_lists(lists, shape=EVERY_TYPE, table_location=LOCATION)
