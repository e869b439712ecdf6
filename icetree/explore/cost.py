"""What commits write: metadata files, and their bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Metadata files and their bytes."""

    files: int = 0
    size_bytes: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(files=self.files + other.files, size_bytes=self.size_bytes + other.size_bytes)
