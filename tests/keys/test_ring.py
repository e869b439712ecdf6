"""The keys of a table: what locks a root unlocks it, and keys get old."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from msgspec.structs import replace

from icetree.errors import CorruptTable, InvalidInput
from icetree.keys.local import LocalKeys
from icetree.keys.ring import LIFESPAN_MS, TIMESTAMP, Ring
from icetree.spec.edit.create import table_metadata
from icetree.spec.metadata.metadata import TableMetadata
from icetree.surroundings import now_ms

KEEPER = LocalKeys({"k": b"0123456789012345"})


def table() -> TableMetadata:
    return table_metadata(
        pa.schema([("n", pa.int64())]),
        location="/lake/t",
        properties={"encryption.key-id": "k"},
        at_ms=0,
        uuid="u",
    )


def ring_of(metadata: TableMetadata, keeper: LocalKeys | None = KEEPER) -> Ring:
    ring = Ring(keeper)
    ring.learn(metadata.encryption_keys)
    return ring


def test_what_was_locked_is_unlocked_by_whoever_has_the_table_key() -> None:
    first, one = Ring(KEEPER).lock(table(), b"key of a root")
    both, other = ring_of(first).lock(first, b"key of another")
    ring = ring_of(both)
    assert ring.unlock(one, file="f") == b"key of a root"
    assert ring.unlock(other, file="f") == b"key of another"
    # One key encryption key does for many roots.
    by = [key.encrypted_by_id for key in both.encryption_keys]
    assert by == ["k", both.encryption_keys[0].key_id, both.encryption_keys[0].key_id]


def test_a_key_encryption_key_that_is_old_is_used_for_nothing_new() -> None:
    first, one = Ring(KEEPER).lock(table(), b"old")
    kek = first.encryption_keys[0]
    young, old = (
        replace(
            first,
            encryption_keys=(replace(kek, properties={TIMESTAMP: str(now_ms() - age_ms)}),),
        )
        for age_ms in (LIFESPAN_MS - 60_000, LIFESPAN_MS + 60_000)
    )
    assert len(Ring(KEEPER).lock(young, b"new")[0].encryption_keys) == 2
    assert len(Ring(KEEPER).lock(old, b"new")[0].encryption_keys) == 3
    assert ring_of(first).unlock(one, file="f") == b"old"


def test_when_a_key_was_made_cannot_be_changed() -> None:
    first, one = Ring(KEEPER).lock(table(), b"key")
    kek, sealed = first.encryption_keys
    for properties in ({TIMESTAMP: "7"}, {}, None):
        ring = Ring(KEEPER)
        ring.learn((replace(kek, properties=properties), sealed))
        with pytest.raises(CorruptTable, match="f: encryption key"):
            ring.unlock(one, file="f")


def test_keys_that_do_not_fit_are_told_in_one_sentence() -> None:
    first, one = Ring(KEEPER).lock(table(), b"key")
    with pytest.raises(InvalidInput, match="'k', and this connection has no keys"):
        ring_of(first, None).unlock(one, file="f")
    with pytest.raises(InvalidInput, match="there is no key 'k' in memory, which has none"):
        ring_of(first, LocalKeys({})).unlock(one, file="f")
    with pytest.raises(InvalidInput, match="key 'k' of memory is not the one"):
        ring_of(first, LocalKeys({"k": b"1123456789012345"})).unlock(one, file="f")
    with pytest.raises(CorruptTable, match="needs encryption key 'x', which the table lacks"):
        ring_of(first).unlock("x", file="f")


def test_damaged_keys_are_corrupt() -> None:
    first, one = Ring(KEEPER).lock(table(), b"key")
    kek, sealed = first.encryption_keys
    for keys in (
        (kek, replace(sealed, encrypted_key_metadata=kek.encrypted_key_metadata)),
        (kek, replace(sealed, encrypted_key_metadata="no base64")),
        (sealed,),
    ):
        ring = Ring(KEEPER)
        ring.learn(keys)
        with pytest.raises(CorruptTable):
            ring.unlock(one, file="f")


def test_a_ring_leaves_its_keys_behind() -> None:
    first, one = Ring(KEEPER).lock(table(), b"key")
    ring = ring_of(first)
    ring.unlock(one, file="f")
    sent = pickle.dumps(ring)
    assert b"0123456789012345" not in sent
    with pytest.raises(CorruptTable, match="lacks"):
        pickle.loads(sent).unlock(one, file="f")
