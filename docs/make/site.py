"""What mkdocs asks while it builds: pages that lie outside `docs`, and links that lead there.

Files are written to be read in the repository, where `docs/tables.md` names `../README.md`. The site
has such files as pages of its own; a link to any other file of the repository becomes its name.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

ROOT: Final = Path(__file__).parents[2]
# mkdocs runs a hook as a file by itself.
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

#: Pages of the site whose text is a file of the repository.
ELSEWHERE: Final = {
    "index.md": "README.md",
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
_LINK: Final = re.compile(r"(!?)\[([^\]\n]*)\]\(([^)\s]+)\)")
_LOADED: Final = re.compile(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(https?://[^"]+)')
_FENCE: Final = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


#: The page that a notebook is shown as.
NOTEBOOKS: Final = {"tutorial.md": "docs/tutorial.ipynb"}
_PAGE_OF: Final = {file: page for page, file in (ELSEWHERE | NOTEBOOKS).items()}


def texts() -> dict[str, str]:
    """Return the text of every page that is no file of the folder, by its place in the site."""
    made = {page: (ROOT / file).read_text("utf-8") for page, file in ELSEWHERE.items()}
    for page, file in NOTEBOOKS.items():
        made[page] = from_notebook((ROOT / file).read_text("utf-8"))
    return made


def from_notebook(text: str) -> str:
    """Return a notebook as a page: what it says, and its code."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts) + "\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside the folder."""
    from mkdocs.structure.files import File

    for page, text in texts().items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return the text of a page with links as the site has them."""
    at = page.file.src_uri
    return within_site(markdown, file_of(at), at)


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Return a page as it was made; one that loads something from another host ends the build."""
    from mkdocs.exceptions import PluginError

    if (found := _LOADED.search(output)) is not None:
        raise PluginError(f"{page.file.src_uri} would load {found[1]}")
    return output


def file_of(page: str) -> str:
    """Return the file of the repository that a page is made of."""
    return (ELSEWHERE | NOTEBOOKS).get(page, f"docs/{page}")


def within_site(markdown: str, file: str, page: str) -> str:
    """Return a file's text as the text of a page; code stays as it is."""
    parts = _FENCE.split(markdown)
    parts[::2] = [_LINK.sub(lambda found: _link(found, file, page), part) for part in parts[::2]]
    return "".join(parts)


def _link(found: re.Match[str], file: str, page: str) -> str:
    image, text, target = found.groups()
    path, _, anchor = target.partition("#")
    if not path or "://" in path or path.startswith("mailto:"):
        return found.group()
    named = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
    if named in _PAGE_OF:
        there = _PAGE_OF[named]
    elif (ROOT / named).is_dir() and named.startswith("docs/"):
        there = f"{named.removeprefix('docs/')}/README.md"
    elif named.startswith("docs/"):
        there = named.removeprefix("docs/")
    else:
        return text if "`" in text else f"`{named}`"
    relative = posixpath.relpath(there, posixpath.dirname(page) or ".")
    return f"{image}[{text}]({relative}{'#' + anchor if anchor else ''})"
