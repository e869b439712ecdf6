"""The examples of the page on the server, run against one."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import icetree
from icetree.serve.access.grants import grants_in
from tests.jars import REPOSITORY, fetched
from tests.serve.processes import Running, running

PAGE = (REPOSITORY / "docs" / "server.md").read_text()


def example(kind: str) -> str:
    """Return the one example of a kind."""
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    folder = tmp_path_factory.mktemp("served")
    with icetree.connect(f"sqlite:///{folder}/c.db", warehouse=str(folder / "lake")):
        pass
    with running(folder) as server:
        yield server, folder


def test_the_examples_of_pyiceberg_and_curl_run(served: tuple[Running, Path]) -> None:
    server, folder = served
    here = server.uri.removeprefix("http://")
    exec(compile(example("py").replace("127.0.0.1:8181", here), "docs/server.md", "exec"), {})
    script = example("sh client").replace("127.0.0.1:8181", here)
    asked = subprocess.run(["sh", "-e", "-c", script], capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    assert '"format-version":3' in asked.stdout
    with icetree.connect(f"sqlite:///{folder}/c.db", warehouse=str(folder / "lake")) as lake:
        table = lake.table("shop.events")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3]
        assert table.verify(deep=True).findings == ()


@pytest.mark.long
def test_the_example_of_spark_runs(served: tuple[Running, Path], tmp_path: Path) -> None:
    server, folder = served
    program = example("py spark").replace("127.0.0.1:8181", server.uri.removeprefix("http://"))
    jar = "iceberg-spark-runtime-4.1_2.13-1.11.0.jar"
    assert jar in program
    (tmp_path / "example.py").write_text(program.replace(jar, str(fetched("iceberg-java"))))
    done = subprocess.run(
        [sys.executable, str(tmp_path / "example.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    with icetree.connect(f"sqlite:///{folder}/c.db", warehouse=str(folder / "lake")) as lake:
        assert lake.table("shop.orders").verify(deep=True).findings == ()


def test_the_file_of_grants_that_is_shown_is_one() -> None:
    grants = grants_in(example("yaml"), "docs/server.md")
    assert grants.clients["etl"].who.may_write(("staging", "raw"))
    assert not grants.clients["etl"].who.may_read(("hr",))
    assert grants.clients["reports"].who.may_read(("hr",))


def test_every_option_that_is_shown_is_one() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "icetree", "serve", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = set(
        re.findall(r"--(?:host|port|grants|tls-[a-z-]+|token-key|new-secret|quiet|workers)", PAGE)
    )
    assert len(shown) >= 8
    assert all(each in told.stdout for each in shown)
