"""The page that shows views: as its three files, and as one file with everything in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from icetree.errors import IcetreeError, InvalidInput, Unsupported
from icetree.explore.history import history, told
from icetree.explore.views import look
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.texts import json_bytes
from icetree.table.changes.changes import ChangeRange
from icetree.table.point import Point
from icetree.table.table import Table

#: What a page may do: run its own script, and ask where it came from. No text of a table becomes
#: markup or a script, and were one to, it would be neither run nor sent anywhere.
_LOCKED: Final = (
    "default-src 'none'; script-src {script}; style-src {style}; img-src data:; connect-src {ask}; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
POLICY: Final = (
    _LOCKED.format(script="'self'", style="'self'", ask="'self'") + "; frame-ancestors 'none'"
)
#: Snapshots that a file holds, and axes of the newest of them.
_SNAPSHOTS: Final = 400
_AXES: Final = 12
#: Where markup could begin or end, and what ends a line of a script.
_MARKUP: Final = re.compile(rb"[<>&]|\xe2\x80[\xa8\xa9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The three files of the page, which hold nothing of any table."""

    html: str
    script: str
    style: str


def page() -> Page:
    """Return the page as it was built; Unsupported where it was not."""
    folder = files("icetree.explore") / "page"
    try:
        html, script, style = (
            (folder / name).read_text(encoding="utf-8")
            for name in ("index.html", "explorer.js", "explorer.css")
        )
    except FileNotFoundError:
        raise Unsupported(
            "the explorer's page is not built: run `make page`, or install icetree from a wheel"
        ) from None
    return Page(html=html, script=script, style=style)


def one_file(
    table: Table,
    *,
    since: Point | None = None,
    upto: Point | None = None,
    where: str | None = None,
) -> str:
    """Return the page with a range of snapshots in it: no server is needed to look at it.

    It holds what the tree tells, bounds of columns among it, and no rows.
    """
    line = ChangeRange(table, since=since, upto=upto).snapshots
    if not line:
        raise InvalidInput(
            f"table {table.name} has no snapshots in this range: there is nothing to show"
        )
    if len(line) > _SNAPSHOTS:
        raise InvalidInput(
            f"{len(line):,} snapshots are more than the {_SNAPSHOTS} that one file holds: "
            "say with --since and --upto which"
        )
    answers = dict(_answers(table, line, where))
    return _whole(page(), {"table": str(table.name), "answers": answers, "where": where or ""})


def key(view: str, given: Mapping[str, str]) -> str:
    """Return under which name an answer stands in a file; `ask.js` makes the same."""
    pairs = sorted((name, value) for name, value in given.items() if value)
    return f"{view} {json.dumps(pairs, ensure_ascii=False, separators=(',', ':'))}"


def _answers(
    table: Table, snapshots: Sequence[Snapshot], where: str | None
) -> Iterator[tuple[str, Any]]:
    """Yield what the page may ask, with the answers, for the snapshots of a line."""
    known = history(table)
    line = [str(each.snapshot_id) for each in snapshots]
    inside = set(line)
    newest = line[-1]
    yield (
        key("history", {}),
        known
        | {
            "line": line,
            "snapshots": [told(each) for each in snapshots],
            "refs": [each for each in known["refs"] if each["snapshot_id"] in inside],
        },
    )
    with suppress(IcetreeError):
        found = look(table, "costs", {"at": newest})
        commits = [each for each in found["commits"] if each["snapshot_id"] in inside]
        yield key("costs", {"at": newest}), found | {"commits": commits}
    asked: list[tuple[str, dict[str, str]]] = [("health", {})]
    for at in line:
        asked += [("film", {"at": at, "limit": "1"}), ("feed", {"at": at})]
        asked += [("scale", {"at": at, "by": known["axis"] or ""})]
    asked += [("scale", {"at": newest, "by": each["name"]}) for each in known["axes"][:_AXES]]
    if where:
        asked += [("pruned", {"at": newest, "where": where})]
        asked += [
            ("scale", {"at": newest, "by": each["name"], "where": where})
            for each in known["axes"][:_AXES]
        ]
    for view, given in asked:
        # A view that files are missing for is left out: the page says so where it is looked at.
        with nullcontext() if view == "pruned" else suppress(IcetreeError):
            yield key(view, given), look(table, view, given)


def _whole(parts: Page, told: Any) -> str:
    document = _MARKUP.sub(lambda at: b"".join(map(_escape, at[0].decode())), json_bytes(told))
    policy = _LOCKED.format(script=_hash(parts.script), style=_hash(parts.style), ask="'none'")
    html = _instead(
        parts.html,
        '<link rel="stylesheet" href="ui/explorer.css">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{parts.style}</style>',
    )
    html = _instead(
        html,
        '<script id="told" type="application/json">{}</script>',
        f'<script id="told" type="application/json">{document.decode()}</script>',
    )
    return _instead(
        html, '<script src="ui/explorer.js"></script>', f"<script>{parts.script}</script>"
    )


def _escape(character: str) -> bytes:
    return f"\\u{ord(character):04x}".encode()


def _instead(html: str, old: str, new: str) -> str:
    if html.count(old) != 1:
        raise Unsupported("the explorer's page is another than this version knows: `make page`")
    return html.replace(old, new)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
