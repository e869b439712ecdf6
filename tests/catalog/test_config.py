"""Which catalog is meant, as PyIceberg's users know it."""

from __future__ import annotations

from pathlib import Path

import pytest

from icetree.catalog.config import Config, open_catalog, resolve
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import InvalidInput, NotFound, Unsupported

YAML = """
default-catalog: prod
catalog:
  prod:
    type: sql
    uri: sqlite:////prod.db
    warehouse: s3://prod/warehouse
    s3.endpoint: http://from-file
    s3.region: eu
  dev:
    uri: sqlite:////dev.db
  glue:
    type: glue
    uri: x://y
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, and no settings but those a test makes."""
    for folder in ("home", "cwd", "pyiceberg"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PYICEBERG_HOME", raising=False)
    monkeypatch.chdir(tmp_path / "cwd")
    return tmp_path


@pytest.mark.parametrize("folder", ["home", "cwd", "pyiceberg"])
def test_the_file_is_found_where_pyiceberg_finds_it(
    home: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / folder / ".pyiceberg.yaml").write_text(YAML)
    if folder == "pyiceberg":
        monkeypatch.setenv("PYICEBERG_HOME", str(home / folder))
    assert resolve(None, {}) == Config(
        name="prod",
        uri="sqlite:////prod.db",
        warehouse="s3://prod/warehouse",
        properties={"type": "sql", "s3.endpoint": "http://from-file", "s3.region": "eu"},
    )
    assert resolve("dev", {}).uri == "sqlite:////dev.db"


def test_arguments_win_over_variables_and_those_over_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "home" / ".pyiceberg.yaml").write_text(YAML)
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__S3__ENDPOINT", "http://from-variable")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__WAREHOUSE", "/from/variable")
    config = resolve("prod", {"warehouse": "/from/argument"})
    assert config.warehouse == "/from/argument"
    assert config.properties["s3.endpoint"] == "http://from-variable"
    assert config.properties["s3.region"] == "eu"


def test_variables_alone_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__URI", "sqlite:////v.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__S3__ACCESS_KEY_ID", "k")
    config = resolve(None, {})
    assert (config.name, config.uri) == ("default", "sqlite:////v.db")
    assert config.properties == {"s3.access-key-id": "k"}


def test_an_address_needs_no_configuration() -> None:
    config = resolve("sqlite:///c.db", {"warehouse": "/w", "s3.path-style-access": True, "n": None})
    assert config == Config(
        name="default",
        uri="sqlite:///c.db",
        warehouse="/w",
        properties={"s3.path-style-access": "true"},
        given=frozenset({"s3.path-style-access"}),
    )


def test_an_address_takes_the_name_it_is_given() -> None:
    assert resolve("sqlite:///c.db", {"name": "mine"}).name == "mine"


def test_another_address_takes_nothing_from_the_configured_one(home: Path) -> None:
    (home / "home" / ".pyiceberg.yaml").write_text(YAML)
    other = resolve("sqlite:////other.db", {})
    assert (other.name, other.warehouse, other.properties) == ("prod", None, {})
    same = resolve("sqlite:////prod.db", {})
    assert same == resolve("prod", {})


def test_nested_settings_become_dotted(home: Path) -> None:
    (home / "home" / ".pyiceberg.yaml").write_text(
        "catalog:\n  default:\n    uri: memory://\n    s3:\n      endpoint: http://e\n"
    )
    assert resolve(None, {}).properties == {"s3.endpoint": "http://e"}


def test_an_unknown_name_is_told_with_those_known(home: Path) -> None:
    (home / "home" / ".pyiceberg.yaml").write_text(YAML)
    with pytest.raises(NotFound, match=r"'nope'.*prod, dev, glue.*PYICEBERG_CATALOG__NOPE__URI"):
        resolve("nope", {})


@pytest.mark.parametrize("text", ["catalog: [", "catalog: prod", "catalog:\n  default: flat"])
def test_a_broken_file_is_refused(home: Path, text: str) -> None:
    (home / "home" / ".pyiceberg.yaml").write_text(text)
    with pytest.raises(InvalidInput, match="configuration"):
        resolve(None, {})


def test_secrets_stay_out_of_the_text_form() -> None:
    config = resolve("postgresql://u:hunter2@h/d", {"s3.secret-access-key": "hunter2"})
    assert "hunter2" not in repr(config)


@pytest.mark.parametrize("uri", ["memory://", "sqlite://", "sqlite:///:memory:"])
def test_a_catalog_in_memory_has_an_address_too(uri: str) -> None:
    assert isinstance(open_catalog(resolve(uri, {})), MemoryCatalog)


def test_a_relative_address_is_from_the_current_folder(home: Path) -> None:
    open_catalog(resolve("sqlite:///a b%20.db", {})).close()
    assert (home / "cwd" / "a b%20.db").exists()


@pytest.mark.parametrize(
    ("uri", "properties", "error"),
    [
        ("https://rest", {}, Unsupported),
        ("mysql://host/db", {}, Unsupported),
        ("sqlite:///c.db", {"type": "glue"}, Unsupported),
        ("sqlite:///c.db", {"py-catalog-impl": "a.B"}, Unsupported),
        ("sqlite://c.db", {}, InvalidInput),
        ("sqlite:///c.db?mode=ro", {}, InvalidInput),
        ("sqlite:///c.db?timeout=soon", {}, InvalidInput),
    ],
)
def test_what_is_no_catalog_of_ours_is_refused(
    uri: str, properties: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        open_catalog(resolve(uri, properties))
