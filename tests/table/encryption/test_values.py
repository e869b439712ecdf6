"""An encrypted table: all verbs work with its keys, and nobody else finds a value anywhere."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest
from click.testing import CliRunner

from icetree.cli.main import cli
from icetree.explore.entry import entry
from tests.table.encryption.lake import (
    EXPECTED,
    KEY,
    NAMES,
    SCHEMA,
    SMALL,
    VALUES,
    connected,
    key_file,
    numbers,
    rows,
    texts_in,
)

#: What data files begin with that are encrypted, by their format.
SEALED = {"parquet": b"PARE", "orc": b"AGS1", "avro": b"AGS1"}


@pytest.mark.parametrize("format", SEALED)
def test_a_search_finds_values_in_plain_files_of_every_format_and_in_no_encrypted_one(
    format: str, tmp_path: Path
) -> None:
    place = tmp_path / "lake" / "db"
    with connected(tmp_path, k=KEY) as lake:
        lake.create_namespace("db")
        for name in ("plain", "secret"):
            # Stock readers know gzip without more.
            properties = {
                **SMALL,
                "write.format.default": format,
                "write.avro.compression-codec": "gzip",
            }
            if name == "plain":
                del properties["encryption.key-id"]
            table = lake.create_table(f"db.{name}", SCHEMA, properties=properties)
            for start in range(0, 50, 10):
                table.append(rows(*range(start, start + 10)))
            table.delete("n in (3, 14)")
            assert numbers(table) == [n for n in range(50) if n not in (3, 14)]
            assert table.verify(deep=True).is_clean
    plain = texts_in(place / "plain", *VALUES)
    files = [path.relative_to(place / "plain") for path in (place / "plain" / "data").rglob("*")]
    written = [str(each) for each in files if each.suffix == f".{format}"]
    assert len(written) == 5
    for each in written:
        assert plain.get(each) == list(VALUES), each
    # Roots and leaves have bounds, which are values.
    assert any(each.startswith("metadata/") for each in plain)
    assert texts_in(place / "secret", *VALUES) == {}
    assert {name.partition("/")[0] for name in texts_in(place / "secret", *NAMES)} == {"metadata"}
    found = (place / "secret" / "data").rglob(f"*.{format}")
    assert {path.read_bytes()[:4] for path in found} == {SEALED[format]}


def test_every_verb_works_with_the_key(made: Path) -> None:
    with connected(made, k=KEY) as lake:
        table = lake.table("db.t")
        assert numbers(table) == EXPECTED
        assert table.scan("n = 22", at="before").to_arrow()["diagnosis"].to_pylist() == ["hush-22"]
        assert table.scan("n = 24").count() == 1
        net = table.changes("before").to_arrow(net=True)
        assert {"INSERT", "DELETE"} <= set(net["_change_type"].to_pylist())
        report = table.verify(deep=True)
        assert report.is_clean, str(report)
        assert report.counts["data_dvs"] > 0
        assert table.explain("n = 24", row_groups=True)


def test_no_value_is_found_in_any_file_nor_in_any_name(made: Path) -> None:
    kinds = {path.suffix for path in (made / "lake").rglob("*")}
    assert {".parquet", ".puffin", ".json"} <= kinds
    assert texts_in(made / "lake", *VALUES) == {}


def test_names_of_columns_are_in_table_metadata_alone(made: Path) -> None:
    found = texts_in(made / "lake", *NAMES)
    assert found
    assert {name.rpartition("/")[2].partition(".")[2] for name in found} == {"gz.metadata.json"}


def test_every_file_is_of_a_kind_that_the_specification_encrypts(made: Path) -> None:
    magics = {
        path.suffix: path.read_bytes()[:4]
        for path in (made / "lake").rglob("*")
        if path.suffix != ".json" and path.is_file()
    }
    assert magics.pop(".puffin") == b"AGS1"
    for folder, magic in (("data", b"PARE"), ("metadata", b"AGS1")):
        for path in (made / "lake" / "db" / "t" / folder).rglob("*.parquet"):
            assert path.read_bytes()[:4] == magic


def test_no_door_shows_a_key(made: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with connected(made, k=KEY) as lake:
        table = lake.table("db.t")
        plan = table.scan().plan()
        secrets = [each[2:18] for each in plan.tasks["key_metadata"].to_pylist()]
        secrets += [KEY, b64encode(KEY), KEY.hex().encode()]
        inspected = [
            getattr(table.inspect, name)().to_pylist() for name in ("files", "entries", "manifests")
        ]
        first = plan.tasks["location"][0].as_py()
        leaf = plan.tasks["leaf"][0].as_py()
        inspected.append(entry(table, file_path=first, leaf=leaf))
        shown = [lake, table, table.files, table.files.ring, table.state, lake.keeper, inspected]
        text = " ".join(map(repr, shown)) + caplog.text
        assert secrets
        for secret in secrets:
            assert repr(secret)[2:-1] not in text
            assert secret.hex() not in text
            assert b64encode(secret).decode() not in text


def test_the_command_line_reads_with_keys_and_shows_none(made: Path) -> None:
    address = ["--catalog", f"sqlite:///{made}/catalog.db"]
    given = ["--property", f"encryption.key-file={key_file(made, k=KEY)}"]
    with connected(made, k=KEY) as lake:
        plan = lake.table("db.t").scan().plan()
        secrets = [each[2:18] for each in plan.tasks["key_metadata"].to_pylist()]
    for asked in (["files"], ["plan"], ["tree"], ["describe"], ["verify", "--deep"]):
        ran = CliRunner().invoke(cli, [*address, *given, *asked, "db.t", "--json"])
        assert ran.exit_code == 0, (asked, ran.output)
        for secret in (*secrets, KEY):
            for shown in (repr(secret)[2:-1], secret.hex(), b64encode(secret).decode()):
                assert shown not in ran.output
    ran = CliRunner().invoke(cli, [*address, "files", "db.t"])
    assert ran.exit_code != 0
    assert "this connection has no keys" in ran.output
