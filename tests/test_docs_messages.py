"""Messages that the documentation explains are those that the code has."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_message_of_troubleshooting_is_in_the_code() -> None:
    page = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text()
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    code = "".join(file.read_text() for file in sorted((ROOT / "icetree").rglob("*.py")))
    # A text that is written in two parts is one text.
    code = re.sub(r'"\s*\n\s*f?"', "", code)
    assert len(messages) > 10
    assert [each for each in messages if each not in code] == []


def test_every_command_that_a_page_names_is_one_with_its_options() -> None:
    from icetree.cli.main import cli

    common = {option for each in cli.params for option in each.opts}
    wrong = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if page.parent.name == "decisions":
            continue
        for line in re.findall(r"(?:^|`)icetree ([^`\n]*)", page.read_text(), re.MULTILINE):
            words = line.partition("#")[0].split()
            name = next((each for each in words if each in cli.commands), None)
            if name is None and any(each.startswith("-") or "." in each for each in words):
                wrong.append(f"{page.name}: icetree {line}")
            if name is not None:
                known = {option for each in cli.commands[name].params for option in each.opts}
                given = {each.partition("=")[0] for each in words if re.match(r"--?[a-z]", each)}
                if not given <= known | common | {"--help", "-h"}:
                    wrong.append(f"{page.name}: icetree {line}")
    assert wrong == []
