"""Breaking a legal tree: its newest root is changed and written anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.foreign import parquet
from tests.foreign.columns import Json
from tests.foreign.dress import PLAIN, Dress
from tests.foreign.history import metadata
from tests.foreign.spelled import document
from tests.foreign.tree import (
    DATA_LEAF,
    DELETED,
    MANIFEST_DV,
    Leaf,
    file_entry,
)
from tests.foreign.world import World
from tests.foreign.writer import Writer


@dataclass(slots=True)
class Forgery:
    """The newest root of a table, to be changed before it is written anew."""

    world: World
    rng: Random
    rows: list[Json]
    dress: Dress = PLAIN
    kind: str = "root"
    #: Metadata that was changed, where the root is left as it was.
    place: str | None = None

    @property
    def writer(self) -> Writer:
        return self.world.writer

    def where(self, holds: Callable[[Json], bool]) -> Json | None:
        """Return one of the rows for which something holds."""
        found = [row for row in self.rows if holds(row)]
        return self.rng.choice(found) if found else None

    def live(self, *contents: int) -> Json | None:
        return self.where(lambda row: row["content_type"] in contents and status_of(row) != DELETED)

    def leaf(self, *contents: int) -> tuple[Leaf, Json] | None:
        """Return a live columnar leaf with its row."""
        by_name = {self.short(leaf.location): leaf for leaf in self.writer.tree.leaves}
        row = self.where(
            lambda row: (
                row["content_type"] in contents
                and status_of(row) != DELETED
                and row["file_format"] == "parquet"
                and bool(by_name[self.short(row["location"])].live())
            )
        )
        return None if row is None else (by_name[self.short(row["location"])], row)

    def short(self, name: str | None) -> str:
        """Return a name as it is within the table."""
        return str(name).removeprefix(self.writer.names.table + "/")

    def rewrite(self, leaf: Leaf, row: Json, entries: list[Json], **dress: Any) -> None:
        """Store a leaf anew with other entries, and let its row name it."""
        kind = "data" if leaf.content == DATA_LEAF else "delete"
        content = parquet.manifest(entries, kind, self.writer.layout, Dress(**dress))
        place = self.writer.shop.store("metadata", "-forged.parquet", content)
        for other in self.rows:
            if self.short(other.get("referenced_file")) == self.short(row["location"]):
                other["referenced_file"] = self.writer.names(place)
        row["location"] = self.writer.names(place)
        row["file_size_in_bytes"] = len(content)

    def entries(self, leaf: Leaf) -> list[Json]:
        return [file_entry(file, status, self.writer.names) for file, status in leaf.entries]

    def document(self) -> Json:
        """Return the table's metadata."""
        return document(self.writer.shop.stored[self.world.metadata_location])

    def retell(self, told: Json | bytes) -> bool:
        """Store metadata anew: a document, or bytes that may be none."""
        content = told if isinstance(told, bytes) else json.dumps(told).encode()
        self.place = self.writer.shop.store("metadata", "-forged.metadata.json", content)
        return True

    def finish(self) -> World:
        """Return the table with the root, or the metadata, as it is now."""
        writer = self.writer
        if self.place is not None:
            return replace(self.world, metadata_location=self.place)
        content = parquet.manifest(self.rows, self.kind, writer.layout, self.dress)
        place = writer.shop.store("metadata", "-forged-root.parquet", content)
        writer.snapshots[-1] = replace(writer.snapshots[-1], root=place)
        at = metadata(writer, self.rng)
        return replace(self.world, metadata_location=at)


Forge = Callable[[Forgery], bool]


def begin(world: World) -> Forgery:
    """Start on a copy of a table: it is left as it was."""
    rng, stored, writer = Random(world.seed), dict(world.stored), world.writer
    shop = replace(writer.shop, stored=stored, rng=rng)
    copied = replace(writer, shop=shop, snapshots=list(writer.snapshots))
    world = replace(world, writer=copied, stored=stored)
    return Forgery(world=world, rng=rng, rows=deepcopy(writer.rows))


def status_of(row: Json) -> int:
    return int(row["tracking_info"]["status"])


def set_in(row: Json | None, name: str, value: Any) -> bool:
    if row is None:
        return False
    row[name] = value
    return True


def track(row: Json | None, name: str, value: Any) -> bool:
    if row is None:
        return False
    row["tracking_info"][name] = value
    return True


def add(f: Forgery, row: Json, **tracking: Any) -> bool:
    copy = deepcopy(row)
    copy["tracking_info"] |= tracking
    f.rows.append(copy)
    return True


def is_on(f: Forgery, row: Json, leaf: Leaf) -> bool:
    is_on = f.short(row.get("referenced_file")) == f.short(leaf.location)
    return bool(row["content_type"] == MANIFEST_DV and is_on)
