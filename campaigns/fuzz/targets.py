"""What is attacked: each kind of bytes that icetree reads, sound examples of it, and the reading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from campaigns.fuzz import read, sound, values
from icetree.errors import CorruptTable, IcetreeError, InvalidInput, Unsupported


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A kind of input."""

    name: str
    #: Sound inputs, which damaged ones are made of.
    seeds: Callable[[], Sequence[bytes]]
    #: Reads an input, with all that follows from it.
    run: Callable[[bytes], Any]
    #: What it may raise.
    allowed: tuple[type[IcetreeError], ...] = (CorruptTable, Unsupported)
    #: How many inputs it gets beside the others: cheap kinds get more.
    share: int = 1
    #: Whether the reading is Python, so that a fuzzer can be guided by what it covers.
    is_guided: bool = False

    def outcome(self, data: bytes) -> BaseException | None:
        """Return what reading an input raised that it must not; None where all is well."""
        try:
            self.run(data)
        except self.allowed:
            return None
        except Exception as error:
            return error
        return None


def _text(run: Callable[[str], Any]) -> Callable[[bytes], Any]:
    return lambda data: run(data.decode(errors="replace"))


TARGETS: Final[dict[str, Target]] = {
    each.name: each
    for each in (
        Target(
            name="metadata",
            seeds=sound.metadata_json,
            run=read.metadata,
            share=30,
            is_guided=True,
        ),
        Target(name="metadata-gz", seeds=sound.metadata_gz, run=read.metadata, share=20),
        Target(name="metadata-repacked", seeds=sound.metadata_json, run=read.repacked, share=10),
        Target(name="page", seeds=sound.pages, run=read.page, share=20, is_guided=True),
        Target(name="view", seeds=sound.views, run=read.view, share=20, is_guided=True),
        Target(name="root", seeds=sound.roots, run=read.root, share=2),
        Target(name="leaf", seeds=sound.leaves, run=read.leaf, share=2),
        Target(name="wide-leaf", seeds=sound.wide_leaves, run=read.leaf, share=1),
        Target(name="footer", seeds=sound.footers, run=read.footer, share=40, is_guided=True),
        Target(
            name="avro-manifest",
            seeds=sound.avro_manifests,
            run=read.avro_manifest,
            share=6,
            is_guided=True,
        ),
        Target(
            name="avro-list", seeds=sound.avro_lists, run=read.avro_list, share=6, is_guided=True
        ),
        Target(name="puffin", seeds=sound.puffins, run=read.puffin, share=40, is_guided=True),
        Target(name="vector", seeds=sound.vectors, run=read.vector, share=60, is_guided=True),
        Target(name="bitmap", seeds=sound.bitmaps, run=read.bitmap32, share=100, is_guided=True),
        Target(name="bitmap64", seeds=sound.bitmaps64, run=read.bitmap64, share=100),
        Target(name="data-file", seeds=sound.data_files, run=read.data_file, share=3),
        Target(name="position-deletes", seeds=sound.position_deletes, run=read.positions, share=3),
        Target(name="equality-deletes", seeds=sound.data_files, run=read.equality, share=2),
        Target(name="orc", seeds=sound.orc_files, run=read.orc_file, share=2),
        Target(name="avro", seeds=sound.avro_files, run=read.avro_file, share=3, is_guided=True),
        Target(
            name="filter",
            seeds=sound.filters,
            run=_text(read.filter_text),
            allowed=(InvalidInput,),
            share=30,
            is_guided=True,
        ),
        Target(
            name="name-mapping",
            seeds=sound.name_mappings,
            run=_text(read.mapping),
            allowed=(InvalidInput,),
            share=10,
        ),
        Target(
            name="filter-json",
            seeds=values.json_filters,
            run=values.json_filter,
            allowed=(InvalidInput,),
            share=20,
            is_guided=True,
        ),
        Target(name="encrypted", seeds=values.streams, run=values.encrypted, share=20),
        Target(
            name="geometry", seeds=values.geometries, run=values.geometry, share=10, is_guided=True
        ),
        Target(
            name="variant", seeds=values.variant_pairs, run=values.variant, share=20, is_guided=True
        ),
        Target(name="table", seeds=sound.table_files, run=read.table, share=1),
    )
}


@cache
def seeds_of(name: str) -> tuple[bytes, ...]:
    """Return the sound inputs of a target, made once."""
    return tuple(TARGETS[name].seeds())
