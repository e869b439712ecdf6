"""Builds the explorer's page when a wheel is made from what has none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Sees to it that no wheel is without the page; an editable install may be."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page, unless it is there."""
        del build_data
        root = Path(self.root)
        if version == "editable" or (root / "icetree/explore/page/explorer.js").exists():
            return
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError("npm builds the explorer's page: install Node, or take a wheel")
        quiet = ["--no-package-lock", "--no-audit", "--no-fund", "--silent"]
        subprocess.run([npm, "install", *quiet], cwd=root / "page", check=True)
        subprocess.run([npm, "run", "--silent", "build"], cwd=root / "page", check=True)
