"""Files with a bit turned over: a finding or an error that names them, never the process's end."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyiceberg.expressions import And, EqualTo, GreaterThan

from icetree.cli.main import cli
from icetree.codec import manifest, metadata
from icetree.errors import CorruptTable
from icetree.rows.formats.avro import AvroReader
from icetree.rows.read.files import ReadRules, open_file
from icetree.rows.read.row_groups import groups_that_may_match
from icetree.spec.entry.entry import DATA, ROOT, Content, Entries
from icetree.spec.fields import FIELD_ID_KEY
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.shape import Shape
from icetree.store.memory import MemoryStore
from icetree.table.verify.findings import Kind
from tests.apart import apart
from tests.effort import EFFORT
from tests.rows.lake import files, new_table
from tests.table.damage import ROWS, Site, flipped, make_table, open_lake
from tests.table.lake import SCHEMA

FILE = "memory://w/file.parquet"
WHERE = And(GreaterThan("n", 3), EqualTo("country", "DE"))


def data_file(**options: object) -> bytes:
    """A data file of `n long, country string`, in two row groups."""
    schema = pa.schema(
        [
            pa.field("n", pa.int64(), metadata={FIELD_ID_KEY: "1"}),
            pa.field("country", pa.string(), metadata={FIELD_ID_KEY: "2"}),
        ]
    )
    out = io.BytesIO()
    rows = pa.table([[1, 2, None, 7], ["DE", "FR", "DE", None]], schema=schema)
    pq.write_table(rows, out, store_schema=False, row_group_size=2, **options)
    return out.getvalue()


def footer_of(stored: bytes) -> range:
    """Where the footer of a Parquet file is, with its length."""
    (length,) = struct.unpack_from("<I", stored, len(stored) - 8)
    return range(len(stored) - 8 - length, len(stored) - 4)


def is_readable(stored: bytes) -> bool:
    """Read a data file as a filtered scan does; a `CorruptTable` must name it."""
    store = MemoryStore()
    store.write_new(FILE, stored)
    shape = Shape(schema=SCHEMA)
    try:
        file = open_file(store, FILE, "parquet", mapping=None)
        groups_that_may_match(file, WHERE, shape, True)
        for group in file.groups:
            file.read(group, SCHEMA.fields, ReadRules(location=FILE))
    except CorruptTable as error:
        if error.file != FILE:
            raise
        return False
    return True


def readable_flips() -> tuple[int, int]:
    """Turn over bits of a footer: how many flips there are, how many files still read.

    All of them, or one of every byte in the usual run.
    """
    stored = data_file()
    flips = [
        (at, bit)
        for at in footer_of(stored)
        for bit in (range(8) if EFFORT > 1 else [(5 * at) % 8])
    ]
    read = 0
    for at, bit in flips:
        bad = bytearray(stored)
        bad[at] ^= 1 << bit
        read += is_readable(bytes(bad))
    return len(flips), read


@pytest.mark.law
def test_no_flipped_bit_of_a_data_files_footer_ends_the_process() -> None:
    flips, read = apart(readable_flips)
    assert flips > 400
    assert read < flips * 3 / 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("lake")
    make_table(made)
    return made


def report_on_footers(folder: Path) -> list[int]:
    """Damage some footers in turn; return how many findings each gave."""
    with open_lake(folder) as lake:
        site = Site(table=lake.table("db.t"))
        name = site.live(Content.DATA)[0]
        content = site.path(name).read_bytes()
        found = []
        for at in list(footer_of(content))[:: 29 if EFFORT > 1 else 89]:
            with site.changed(name, lambda content, at=at: flipped(content, at)):
                found.append(len(site.table.verify(deep=True, snapshots="current").findings))
        return found


@pytest.mark.law
def test_verify_reports_on_every_footer_and_lives(folder: Path) -> None:
    found = apart(report_on_footers, folder)
    assert len(found) > 5
    assert sum(each > 0 for each in found) > len(found) / 3


# --- checksums -------------------------------------------------------------------------------


def _page_byte(stored: bytes, text: bytes) -> int:
    at = stored.find(text)
    assert 0 < at < footer_of(stored).start
    return at


def test_a_flipped_bit_in_a_plain_data_page_is_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        lake.create_namespace("db")
        table = lake.create_table(
            "db.t", ROWS, properties={"write.parquet.compression-codec": "uncompressed"}
        )
        held = pa.Table.from_pylist([{"id": 1, "country": "Atlantis"}], ROWS)
        table.append(held)
        site = Site(table=table)
        [name] = site.live(Content.DATA)

        def spoil(content: bytes) -> bytes:
            return flipped(content, _page_byte(content, b"Atlantis"))

        with site.changed(name, spoil):
            [finding] = table.verify(deep=True).findings
            with pytest.raises(CorruptTable, match="CRC") as error:
                table.scan("id = 1").to_arrow()
            with pytest.raises(CorruptTable, match="CRC"):
                table.changes().to_arrow()
            table.set_properties({"read.parquet.checksums": "false"})
            assert table.scan().to_arrow()["country"].to_pylist() != ["Atlantis"]
        assert (finding.kind, finding.file) == (Kind.CHECKSUM, name)
        assert error.value.file.endswith(name)
        assert table.verify(deep=True).is_clean


def test_no_flipped_bit_in_a_block_of_avro_is_read_as_another_value() -> None:
    table = new_table(ROWS, properties={"write.format.default": "avro"})
    table.append(pa.Table.from_pylist([{"id": n, "country": f"land {n}"} for n in range(40)], ROWS))
    [name] = files(table)
    stored = table.files.store.read(name)

    def read(content: bytes) -> pa.Table | None:
        try:
            file = AvroReader(pa.BufferReader(content), name)
            return pa.concat_tables(
                file.read(group, [], ["id", "country"]) for group in range(len(file.group_rows))
            )
        except CorruptTable:
            return None

    # Whatever ends a block ends the header, too.
    header_ends = stored.index(stored[-16:]) + 16
    held, flips = read(stored), range(header_ends, len(stored))
    assert held is not None
    assert len(flips) > 100
    found = [read(flipped(stored, at)) for at in flips]
    assert all(each is None or each.equals(held) for each in found)


@pytest.mark.parametrize("kind", [ROOT, DATA])
def test_a_flipped_bit_in_a_page_of_a_manifest_changes_no_entry(folder: Path, kind: str) -> None:
    with open_lake(folder) as lake:
        site = Site(table=lake.table("db.t"))
        name = site.root_file if kind == ROOT else site.leaf().location
        stored, shape = site.path(name).read_bytes(), site.table.metadata.shape()
    sound = manifest.decode(stored, kind, shape, file=name)
    places = range(4, footer_of(stored).start, 53)

    def decoded(at: int) -> Entries | None:
        try:
            return manifest.decode(flipped(stored, at), kind, shape, file=name)
        except CorruptTable:
            return None

    found = [decoded(at) for at in places]
    # The heads of pages also hold what nobody reads.
    assert all(each.equals(sound) for each in found if each is not None)
    assert found.count(None) > len(places) * 3 / 4


# --- names -----------------------------------------------------------------------------------


def _rename(content: bytes) -> bytes:
    at = content.find(b"country", footer_of(content).start)
    return content[:at] + b"c\xffuntry" + content[at + 7 :]


def test_a_columns_name_that_is_no_utf8_is_told_with_its_file(folder: Path) -> None:
    with open_lake(folder) as lake:
        site = Site(table=lake.table("db.t"))
        name = site.live(Content.DATA)[0]
        with site.changed(name, _rename):
            with pytest.raises(CorruptTable, match=r"name is no UTF-8: b'c\\xffuntry'") as error:
                site.table.scan().to_arrow()
            assert error.value.file.endswith(name)
            [finding] = site.table.verify(deep=True).findings
            assert (finding.kind, finding.file) == (Kind.UNREADABLE, name)


def test_the_command_line_tells_of_such_a_name_too(folder: Path) -> None:
    with open_lake(folder) as lake:
        site = Site(table=lake.table("db.t"))
        name = site.live(Content.DATA)[0]
    command = ["--catalog", f"sqlite:///{folder}/catalog.db", "verify", "db.t", "--deep"]
    with site.changed(name, _rename):
        shown = CliRunner().invoke(cli, command)
    assert shown.exit_code == 1
    assert "no UTF-8" in shown.output


def test_a_flipped_bit_in_metadata_under_gzip_changes_nothing_that_is_read(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    stored = metadata.encode(table.metadata)
    read = metadata.decode(stored, file=FILE)
    found = [_read_or_refused(flipped(stored, at)) for at in range(len(stored))]
    # Nothing is read from times and such in the header of gzip.
    assert [each for each in found if each not in (None, read)] == []
    assert found.count(None) > len(found) - 10


def _read_or_refused(stored: bytes) -> TableMetadata | None:
    """Read metadata; None where it is refused."""
    try:
        return metadata.decode(stored, file=FILE)
    except CorruptTable:
        return None
