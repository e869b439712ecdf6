"""Every Python snippet of the documentation runs, page after page, and can be run again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from icetree.spark.session import local_session
from tests.site_menu import MENU, in_nav
from tests.spark.settings import QUICK
from tests.test_docs import PAGES, ROOT

SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: Pages in folders, in the order of the site's menu; none of them needs Spark.
IN_FOLDERS = [ROOT / "docs" / name for name in in_nav(MENU) if "/" in name]


def test_the_snippets_of_all_pages_run_one_after_the_other_and_then_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As somebody who reads on would try them, in one folder, and again the day after."""
    # The pages take the session that runs; its workers find ours where Java was started.
    local_session("icetree tests", extra_conf=QUICK)
    monkeypatch.chdir(tmp_path)
    snippets = {page: SNIPPET.findall(page.read_text()) for page in (*PAGES, *IN_FOLDERS)}
    assert len([page for page in PAGES if snippets[page]]) >= 4
    assert len([page for page in IN_FOLDERS if snippets[page]]) >= 2
    for _ in ("today", "tomorrow"):
        for page, found in snippets.items():
            names: dict[str, object] = {}
            for snippet in found:
                assert page in PAGES or "spark" not in snippet, page
                exec(compile(snippet, str(page), "exec"), names)
