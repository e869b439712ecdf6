"""A notebook as it looks when it has run: its cells, and what their last values show of themselves.

What Jupyter would do, without it: of a value, `_repr_svg_` or `_repr_html_`, else `_repr_pretty_` or `repr`.
"""

from __future__ import annotations

import ast
import io
import json
import os
from contextlib import redirect_stdout
from html import escape
from pathlib import Path
from typing import Any, Final

#: Cells that are shown: those that end with one of these values.
_WANTED: Final = ("orders", "orders.tree()", "scan.explain()")
_DOCUMENT: Final = """<!doctype html><meta charset="utf-8"><style>
html {{ background: #fff; color: #1b1f24; font: 14px/1.5 "Helvetica Neue", Arial, sans-serif; }}
body {{ margin: 0; padding: 16px 20px; }}
.cell {{ display: grid; grid-template-columns: 58px minmax(0, 1fr); gap: 2px 8px; margin-bottom: 12px; }}
.mark {{ color: #307fc1; font: 12px "DejaVu Sans Mono", Menlo, monospace; text-align: right; padding-top: 9px; }}
pre {{ margin: 0; font: 12px/1.45 "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre-wrap; }}
.code {{ background: #f5f5f5; border: 1px solid #e0e0e0; padding: 8px 10px; }}
.out {{ padding: 4px 10px; overflow: hidden; }} .out svg {{ max-width: 100%; height: auto; }}
</style>{}"""
_CELL: Final = (
    '<div class="cell"><div class="mark">[{n}]:</div><pre class="code">{code}</pre>'
    '<div></div><div class="out">{out}</div></div>'
)


def shown(notebook: Path, folder: Path) -> str:
    """Run a notebook in a folder; return the cells that end with a value to be seen."""
    cells = [
        each
        for each in json.loads(notebook.read_text("utf-8"))["cells"]
        if each["cell_type"] == "code"
    ]
    names: dict[str, Any] = {}
    parts = []
    here = Path.cwd()
    os.chdir(folder)
    try:
        for number, cell in enumerate(cells, 1):
            code = "".join(cell["source"])
            out = _run(code, names)
            if code.strip().splitlines()[-1] in _WANTED:
                parts.append(_CELL.format(n=number, code=escape(code), out=out))
    finally:
        os.chdir(here)
    return _DOCUMENT.format("".join(parts))


def _run(code: str, names: dict[str, Any]) -> str:
    """Run a cell; return what it shows, as markup."""
    tree = ast.parse(code)
    last = tree.body[-1]
    value, printed = None, io.StringIO()
    with redirect_stdout(printed):
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        else:
            exec(compile(tree, "cell", "exec"), names)
    text = printed.getvalue()
    return (f"<pre>{escape(text)}</pre>" if text else "") + _seen(value)


def _seen(value: Any) -> str:
    """Return a value as it shows itself."""
    for way in ("_repr_svg_", "_repr_html_"):
        if found := getattr(value, way, None):
            return str(found())
    return "" if value is None else f"<pre>{escape(repr(value))}</pre>"
