"""The folder that a demo leaves its table in: the next demo takes its place, and no other's."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from icetree.cli.demo.show import new_folder

#: Says that a folder is a demo's, and that the next may have it.
_MARK: Final = ".icetree-demo"


def demo_folder(folder: Path) -> Path:
    """Return the folder, made and empty but for the mark; that of an earlier demo is cleared."""
    if (folder / _MARK).is_file():
        shutil.rmtree(folder)
    made = new_folder(folder).resolve()
    (made / _MARK).write_text("Made by `icetree demo`, whose next run clears it.\n")
    return made
