"""How much memory a stored file may take once unpacked.

A few bytes can claim to be anything. What decides how much is allocated is therefore compared with
a limit first. The limits are the process's own, set in its environment: a file cannot raise them,
and they hold before any table is known, on Spark's executors too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from icetree.errors import InvalidInput, TooLarge


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A number of bytes, under the name that it is set by."""

    name: str
    default: int

    @property
    def bytes(self) -> int:
        """How many bytes are allowed now."""
        said = os.environ.get(self.name)
        if said is None:
            return self.default
        if not (said.isascii() and said.isdigit()):
            raise InvalidInput(f"{self.name}={said!r}: it must be a whole number of bytes")
        return int(said)

    def require(self, wanted: int, *, file: str, what: str) -> None:
        """Refuse what would take more bytes than allowed."""
        if wanted > self.bytes:
            raise self.exceeded(file, f"{what} would take {wanted:,} bytes, more")

    def exceeded(self, file: str, what: str) -> TooLarge:
        """Return the error for what takes more than is allowed."""
        return TooLarge(
            file,
            f"{what} than the limit of {self.bytes:,} bytes: "
            f"if the file is right, set {self.name} in the environment to more",
        )


#: Of one metadata file: table metadata, a page of history, a manifest, a Puffin footer.
METADATA: Final = Limit(name="ICETREE_MAX_METADATA_BYTES", default=512 * 1024**2)
#: Of the columns that are read of one row group of a data file.
ROW_GROUP: Final = Limit(name="ICETREE_MAX_ROW_GROUP_BYTES", default=8 * 1024**3)
