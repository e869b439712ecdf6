"""A picture as a page: the SVG in HTML that loads nothing and runs nothing."""

from __future__ import annotations

from html import escape
from typing import Final

from icetree.picture.model import Picture
from icetree.picture.svg import to_svg

#: Whatever a table calls its things, a browser runs none of it.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def to_html(picture: Picture) -> str:
    """Return one page of HTML that holds all it needs."""
    title = escape(picture.caption or "icetree")
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n"
        "<style>body { margin: 1rem; } svg { max-width: 100%; height: auto; }</style>\n"
        f"</head>\n<body>\n{to_svg(picture)}\n</body>\n</html>\n"
    )
