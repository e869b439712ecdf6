"""What Tab puts on the command line is a word, whatever a table or branch is called."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import icetree
from icetree.cli.main import cli
from icetree.cli.sql.shell import Words

PLAIN = ["prod", "prod-2.x", "prod/früh", "prod@v1:a+b"]
HOSTILE = [
    "prod$(touch${IFS}PWNED)", "prod`touch${IFS}PWNED`", "prod;touch PWNED", "prod|sh", "prod&x", "prod>PWNED",
    "prod two", "prod\nplain,evil", "prod\x1b]0;hi\x07", "prod*", "prod'", 'prod"', "prod\\", "prod~", "prod!x", "prod{a,b}",
    "prod#x", "prod=x", "prod\u202ex", "prod\tx",
]  # fmt: skip


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    uri = f"sqlite:///{tmp_path}/c.db"
    with icetree.connect(uri, warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        lake.create_table("db.$(touch${IFS}PWNED)", pa.schema([("id", pa.int64())]))
        table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
        table.append(pa.table({"id": [1]}))
        for name in (*PLAIN, *HOSTILE, "--drop"):
            table.create_branch(name)
    return uri


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_only_words_are_offered_to_a_shell(catalog: str, shell: str) -> None:
    def offered(line: str) -> str:
        words = line.split(" ")
        environment = {
            "_ICETREE_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": words[-1] if shell == "fish" else str(len(words) - 1),
            "ICETREE_CATALOG": catalog,
        }
        return CliRunner(env=environment).invoke(cli, [], prog_name="icetree").stdout

    # bash and fish have a line for each, zsh has three.
    lines = offered("icetree head db.t --at prod").splitlines()
    names = lines[1::3] if shell == "zsh" else [each.partition(",")[2] for each in lines]
    assert sorted(names) == sorted(PLAIN)
    assert "PWNED" not in offered("icetree head db.")
    assert "--drop" not in offered("icetree head db.t --at --")


def test_bash_runs_nothing_that_a_name_says(catalog: str, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "icetree"
    program.parent.mkdir()
    main = "from icetree.cli.main import main; main()"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{main}' \"$@\"\n")
    program.chmod(0o755)
    script = """
        eval "$(icetree completion bash)"
        COMP_WORDS=(icetree head db.t --at prod) COMP_CWORD=4
        _icetree_completion icetree
        eval "printf '%s\\n' ${COMPREPLY[*]}"
    """
    root = Path(__file__).parents[2]
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", script],
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(root),
            "ICETREE_CATALOG": catalog,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not (tmp_path / "PWNED").exists()
    assert sorted(done.stdout.split()) == sorted(PLAIN), done.stderr


def test_the_shell_of_sql_offers_no_name_that_ends_a_statement() -> None:
    words = Words(lambda: ["db.t", "db.x; DROP TABLE db.t; --", "db.a\x1b[2J", "db.a b"])
    found = words.get_completions(Document("db."), CompleteEvent())
    assert [each.text for each in found] == ["db.t"]
