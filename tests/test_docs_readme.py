"""What the README says to type runs, in the order in which it says so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from icetree.cli.main import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_first_table_and_its_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is Spark's is left to `test_docs_snippets.py`, which runs all that is Python."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    ran = []
    for language, text in BLOCKS:
        if language == "python" and "spark" not in text:
            exec(compile(text, "README.md", "exec"), names)
        for line in text.splitlines() if not language else ():
            if line.startswith("icetree "):
                found = CliRunner().invoke(cli, shlex.split(line)[1:])
                assert (found.exit_code, found.stderr) == (0, ""), line
                assert found.stdout.strip(), line
                ran.append(shlex.split(line)[3])
    assert ran[:3] == ["tree", "explain", "verify"]


def test_every_target_that_a_page_says_to_make_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    told = {
        (page.name, name)
        for page in pages
        for name in re.findall(r"(?:^```\n|`)make ([a-z0-9-]+)", page.read_text(), re.MULTILINE)
    }
    assert {("README.md", "demo"), ("CONTRIBUTING.md", "screens")} <= told
    assert sorted(each for each in told if each[1] not in targets) == []


def test_every_measurement_and_campaign_is_told() -> None:
    """Of targets that are no step of others; `make help` says of each what it is for."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):.*## ", makefile, re.MULTILINE))
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(?:make )?([a-z0-9-]+)", page))
    steps = {"help", "demo", "clean", "lint", "types"}
    steps |= {"iceberg-java", "iceberg-aws", "sqlite-jdbc", "s3fs", "s3a"}
    assert targets - steps - told == set()
