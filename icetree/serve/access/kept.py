"""The key for tokens that a server keeps by itself, for the one that is started next: beside the grants."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from icetree.errors import InvalidInput
from icetree.serve.access.grants import new_secret
from icetree.serve.access.tokens import key_in
from icetree.surroundings import new_uuid


def kept_key(grants: str) -> bytes | None:
    """Return the key that is kept beside a file of grants; the first who asks puts one there.

    None where nothing can be kept. InvalidInput for one that others may know: whoever can read it can be
    anyone, and so can whoever put it there.
    """
    place = Path(f"{grants}.key")
    # What is there stays: of servers that start at once one is first.
    with suppress(OSError):
        _put(place, f"{new_secret()}\n")
    try:
        text = _own(place)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the key for tokens in {place} cannot be read: {error}") from None
    if text is None:
        raise InvalidInput(
            f"the key for tokens in {place} may be known to others: delete it, and another is made that "
            "this user alone can read, or give one with --token-key"
        )
    return key_in(text, f"the file {place}")


def _own(place: Path) -> str | None:
    """Return what is in a file that nobody but this user can read; None where others can."""
    with os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
        found = os.fstat(file.fileno())
        is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        return file.read() if is_own and not found.st_mode & 0o077 else None


def _put(place: Path, text: str) -> None:
    """Write a file that this user alone can read, whole or not at all; OSError where one is there."""
    if os.path.lexists(place):
        return
    part = place.with_name(f"{place.name}.{new_uuid()}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(part, place)
    finally:
        part.unlink(missing_ok=True)
