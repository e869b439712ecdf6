"""A table as a dict: what every tree must amount to, with nothing of a tree in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from icetree.spec.entry.entry import Content, Entry, Status

#: A file's name: its content and its location, or a data DV's data file.
Key = tuple[int, str]

DATA, VECTOR, EQUALITY = Content.DATA, Content.POSITION_DELETES, Content.EQUALITY_DELETES


class NotLive(Exception):
    """The change removes what the table does not have."""


def key_of(entry: Entry) -> Key:
    """Return the name by which a file is removed."""
    key = entry.referenced_file if entry.content_type == VECTOR else entry.location
    assert key is not None
    return int(entry.content_type), key


def size_of(entry: Entry) -> int:
    """Return what a file adds to the table's size: a data DV is a range of its Puffin file."""
    size = entry.file_size_in_bytes if entry.dv_size_in_bytes is None else entry.dv_size_in_bytes
    assert size is not None
    return size


@dataclass(slots=True)
class Model:
    """The live files, by name; snapshot ids and sequence numbers count from 1."""

    files: dict[Key, Entry] = field(default_factory=dict)
    number: int = 0
    next_row_id: int = 0

    def commit(
        self, added: Iterable[Entry], removed: Iterable[Key]
    ) -> tuple[dict[Key, Entry], dict[Key, Entry]]:
        """Apply a change; return the files that came and those that went, whole or not at all.

        Row ids of the files that came are not known yet: `number_rows` learns them.
        """
        added, named = list(added), set(removed)
        if missing := named - self.files.keys():
            raise NotLive(missing)
        named |= {(VECTOR, key) for content, key in named if content == DATA}
        named |= {key_of(entry) for entry in added if entry.content_type == VECTOR}
        went = {key: self.files.pop(key) for key in named & self.files.keys()}
        self.number += 1
        came = {key_of(entry): self._stamped(entry) for entry in added}
        assert len(came) == len(added), "a change that adds one file twice is no test of the tree"
        assert not came.keys() & self.files.keys(), "nor is one that adds what is live"
        self.files |= came
        return came, went

    def _stamped(self, entry: Entry) -> Entry:
        return replace(
            entry,
            status=Status.EXISTING,
            snapshot_id=self.number,
            sequence_number=entry.sequence_number or self.number,
            file_sequence_number=self.number,
        )

    def number_rows(self, first_row_ids: Mapping[str, int]) -> None:
        """Learn the first row ids of new data files: together they are one range, without gaps."""
        ranges = sorted(
            (first, self.files[DATA, name].record_count, name)
            for name, first in first_row_ids.items()
        )
        for first, rows, name in ranges:
            # A file without rows takes no ids, so it may start where its neighbour does.
            assert first == self.next_row_id, (
                f"{name} starts at row {first}, not {self.next_row_id}"
            )
            self.files[DATA, name] = replace(self.files[DATA, name], first_row_id=first)
            self.next_row_id += rows

    def names(self, content: Content) -> list[str]:
        """Return the live files of a content, in the order of their names."""
        return sorted(key for found, key in self.files if found == content)

    def totals(self) -> dict[str, int]:
        """Return the totals that a snapshot's summary must tell."""

        def of(*contents: Content) -> list[Entry]:
            return [each for each in self.files.values() if each.content_type in contents]

        return {
            "total-data-files": len(of(DATA)),
            "total-delete-files": len(of(VECTOR, EQUALITY)),
            "total-records": sum(each.record_count for each in of(DATA)),
            "total-files-size": sum(size_of(each) for each in self.files.values()),
            "total-position-deletes": sum(each.record_count for each in of(VECTOR)),
            "total-equality-deletes": sum(each.record_count for each in of(EQUALITY)),
        }
