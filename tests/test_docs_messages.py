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
