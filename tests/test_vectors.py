"""The test vectors say the same to icetree and to a reader that is written by the format alone."""

from __future__ import annotations

import importlib.util
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from docs.make.vectors import MADE, expected, files_of
from icetree.catalog.memory import MemoryCatalog
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.verify.findings import Severity

VECTORS = Path(__file__).parents[1] / "vectors"


def by_hand() -> ModuleType:
    """Return the reader that shares nothing with icetree."""
    spec = importlib.util.spec_from_file_location("check", VECTORS / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CHECK = by_hand()


def test_every_vector_is_there() -> None:
    folders = {path.name for path in VECTORS.iterdir() if path.is_dir()}
    assert sorted(MADE) == sorted(folders - {"__pycache__"})


def test_the_reader_by_hand_knows_nothing_of_icetree() -> None:
    named = {
        line.split()[1].partition(".")[0]
        for line in (VECTORS / "check.py").read_text().splitlines()
        if line.startswith(("import ", "from "))
    }
    standard = {"__future__", "gzip", "json", "pathlib", "struct", "sys", "typing", "zlib"}
    assert named - standard == {"pyarrow"}


@pytest.mark.parametrize("name", MADE)
def test_a_vector_reads_as_it_says_by_hand(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert CHECK.main([str(VECTORS / name)]) == 0
    assert "as expected" in capsys.readouterr().out


def test_however_many_are_wrong_none_or_all_it_does_not_say_that_it_is_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of an exit status only 8 bits are told: 256 would be 0."""
    assert CHECK.main([str(tmp_path / "nowhere")] * 256) == 1
    assert CHECK.main([]) == CHECK.main(["--tell"]) == 2
    assert "which folders?" in capsys.readouterr().err


def test_a_bitmap_that_is_cut_off_is_no_bitmap_to_it() -> None:
    one_block = struct.pack("<IIHHI", 12346, 1, 0, 65535, 16) + bytes(8192)
    assert CHECK.roaring(one_block) == set()
    with pytest.raises(CHECK.Broken, match="cut off"):
        CHECK.roaring(one_block[:-1])


def test_the_commands_of_the_page_run() -> None:
    """As the page of test vectors has them, from the repository's root."""
    ran = subprocess.run(
        [sys.executable, "vectors/check.py", "--tell", "vectors/appends"],
        cwd=VECTORS.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(ran.stdout)
    expected_told = json.loads((VECTORS / "appends" / "expected.json").read_text())
    assert {"what": expected_told["what"], **told} == expected_told


@pytest.mark.parametrize("name", MADE)
def test_a_vector_reads_as_it_says_by_icetree(name: str) -> None:
    folder = VECTORS / name
    told = json.loads((folder / "expected.json").read_text())
    place = json.loads((folder / told["metadata"]).read_text())["location"]
    store = MemoryStore()
    for path in folder.rglob("*.*"):
        if path.is_file():
            store.write_new(f"{place}/{path.relative_to(folder)}", path.read_bytes())
    lake = Lake(catalog=MemoryCatalog("vectors"), store=store, warehouse="memory://elsewhere")
    lake.create_namespace("db")
    table = lake.register_table("db.t", f"{place}/{told['metadata']}")
    # Former metadata files were left out, which is no error.
    found = table.verify(deep=True).findings
    assert [each for each in found if each.severity is not Severity.WARNING] == []
    assert {"what": told["what"], **expected(table)} == told


def test_a_vector_is_made_again_as_it_is() -> None:
    made = files_of("removals")
    there = {path for path in (VECTORS / "removals").rglob("*") if path.is_file()}
    assert {str(path.relative_to(VECTORS / "removals")) for path in there} == set(made)
    assert made["expected.json"] == (VECTORS / "removals" / "expected.json").read_bytes()


@pytest.mark.parametrize("wrong", ["a row", "a bit", "a kind", "a checksum"])
def test_the_reader_by_hand_sees_what_is_wrong(
    wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "rows" if wrong in ("a row", "a checksum") else "removals"
    shutil.copytree(VECTORS / name, tmp_path / name)
    folder = tmp_path / name
    told = json.loads((folder / "expected.json").read_text())
    match wrong:
        case "a row":
            told["snapshots"][-1]["rows"].pop()
            (folder / "expected.json").write_text(json.dumps(told))
        case "a checksum":
            blob = next(iter(folder.glob("data/*.puffin")))
            content = bytearray(blob.read_bytes())
            content[20] ^= 1
            blob.write_bytes(content)
        case _:
            root = folder / told["snapshots"][3]["root_manifest"]
            _rewritten(root, content="delete" if wrong == "a kind" else "root")
    assert CHECK.main([str(folder)]) == 1
    assert "as expected.json" in capsys.readouterr().out or wrong != "a row"


def _rewritten(root: Path, *, content: str) -> None:
    """Write a root anew, without its manifest DV, or as another kind of manifest."""
    table = pq.ParquetFile(root).read()
    kept = table if content != "root" else table.filter(pc.field("content_type") != 5)
    with pq.ParquetWriter(root, kept.schema) as writer:
        writer.write_table(kept)
        writer.add_key_value_metadata({"format-version": "4", "content": content})
