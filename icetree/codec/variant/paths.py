"""Paths into variants: `$.a.b[0]` or `$['a']['b'][0]`, and the normalized form that bounds have."""

from __future__ import annotations

import re
from typing import Final

from icetree.codec.variant.read import Path
from icetree.errors import InvalidInput

_STEP: Final = re.compile(
    r"""\.(?P<plain>[^.\[\]'"]+) | \[(?P<number>\d{1,9})\]
    | \['(?P<single>(?:[^'\\]|\\.)*)'\] | \["(?P<double>(?:[^"\\]|\\.)*)"\]""",
    re.VERBOSE,
)


def read_path(text: str) -> Path:
    """Read a path; `InvalidInput` where it is none."""
    found: list[str | int] = []
    at = 1
    if not text.startswith("$"):
        raise _no_path(text)
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            raise _no_path(text)
        if step["number"] is not None:
            found.append(int(step["number"]))
        elif step["plain"] is not None:
            found.append(step["plain"])
        else:
            quoted = step["single"] if step["single"] is not None else step["double"]
            found.append(re.sub(r"\\(.)", r"\1", quoted))
        at = step.end()
    return tuple(found)


def _no_path(text: str) -> InvalidInput:
    return InvalidInput(f"{text!r} is no path into a variant: write $.name, $['name'] or $[0]")


def normalized(path: Path) -> str:
    """Return a path in the one form that stands for it."""
    return "$" + "".join(
        f"[{step}]" if isinstance(step, int) else f"['{_escaped(step)}']" for step in path
    )


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")
