"""ORC files are taken apart in other processes: whatever a file does there, this one goes on."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from campaigns.fuzz import sound_lake
from icetree.errors import CorruptTable, InvalidInput, TooLarge
from icetree.rows.formats import orc_apart
from icetree.rows.formats.orc import OrcReader
from icetree.spec.entry.entry import Entry
from tests.rows.lake import new_table

FILE = "memory://x/data.orc"
CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus" / "orc"


def written(data: pa.Table, **how: object) -> bytes:
    sink = io.BytesIO()
    orc.write_table(data, sink, **how)
    return sink.getvalue()


DEADLY = (CORPUS / "text-of-fewer-bytes-than-none").read_bytes()
SOUND = written(pa.table({"id": range(1000), "s": [str(each) for each in range(1000)]}))


def read(content: bytes, location: str = FILE) -> pa.Table:
    reader = OrcReader(pa.BufferReader(content), location)
    parts = [
        reader.read(group, range(len(reader.schema)), reader.schema.names)
        for group in range(len(reader.group_rows))
    ]
    return pa.concat_tables(parts)


def require_sound() -> None:
    assert read(SOUND)["id"].to_pylist() == list(range(1000))


@pytest.mark.parametrize(
    "name", ["text-of-fewer-bytes-than-none", "map-of-fewer-entries-than-none"]
)
def test_a_file_that_ends_its_reader_is_named_and_no_more(name: str) -> None:
    with pytest.raises(CorruptTable, match="Arrow's ORC reader dies of it") as error:
        read((CORPUS / name).read_bytes())
    assert error.value.file == FILE
    require_sound()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the memory of a process")
def test_a_small_file_takes_no_more_memory_than_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = written(
        pa.table({"s": pa.array(["x" * 2**20] * 300)}),
        compression="zstd",
        dictionary_key_size_threshold=1.0,
    )
    assert len(bomb) < 2**16
    monkeypatch.setenv("ICETREE_MAX_ROW_GROUP_BYTES", str(2**20))
    with pytest.raises(CorruptTable, match="ICETREE_MAX_ROW_GROUP_BYTES"):
        read(bomb)
    monkeypatch.setenv("ICETREE_MAX_ROW_GROUP_BYTES", str(2**30))
    assert read(bomb).num_rows == 300


def test_columns_of_more_bytes_than_the_limit_are_not_taken_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a reader has to spare is no room for its answer."""
    monkeypatch.setenv("ICETREE_MAX_ROW_GROUP_BYTES", str(10_000))
    with pytest.raises(TooLarge, match="stripe 0 would take"):
        read(written(pa.table({"s": ["x" * 100] * 1000})))


def test_threads_read_side_by_side() -> None:
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: read(SOUND), range(64)):
            assert found["s"].to_pylist() == [str(each) for each in range(1000)]


def test_a_store_that_fails_is_told_as_it_is() -> None:
    class Failing(io.BytesIO):
        reads = 0

        def read(self, size: int | None = -1) -> bytes:
            Failing.reads += 1
            if Failing.reads > 1:
                raise ConnectionError("the line is dead")
            return super().read(size)

    source = pa.PythonFile(Failing(SOUND), mode="r")
    with pytest.raises(ConnectionError, match="the line is dead"):
        OrcReader(source, FILE).read(0, [0], ["id"])
    require_sound()


def test_who_scans_adds_or_verifies_survives_a_file_that_ends_its_reader() -> None:
    table = new_table(sound_lake.table().metadata.schema())
    name = f"{table.location}/data/x.orc"
    table.files.store.write_new(name, DEADLY)
    with pytest.raises(InvalidInput, match=f"{name} cannot be added"):
        table.add_files(name)
    table.append_files(
        [
            Entry(
                location="data/x.orc",
                file_format="orc",
                record_count=30,
                file_size_in_bytes=len(DEADLY),
            )
        ]
    )
    with pytest.raises(CorruptTable, match=f"{name}: Arrow's ORC reader dies of it"):
        table.scan().to_arrow()
    assert "reader dies of it" in str(table.verify(deep=True).findings)


def test_a_reader_that_gets_nowhere_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is alive, and says so: what it uses of a processor tells."""
    long = written(pa.table({"id": pa.array(range(2_000_000)).cast(pa.string())}))
    with monkeypatch.context() as patched:
        patched.setattr(orc_apart, "_CPU_S", 0.01)
        patched.setattr(orc_apart, "_BYTES_A_S", 2**62)
        with pytest.raises(CorruptTable, match=r"takes more than 0\.01 s of a processor to read"):
            read(long)
    assert read(long).num_rows == 2_000_000
