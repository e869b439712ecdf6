"""Files on a local disk. What is written stays written, through a crash of the machine too.

A new file is written under a temporary name, flushed, and only then linked to its own name: a link
never replaces a file, and whoever finds the name finds all the bytes. Flushing the folder makes the
name durable. The temporary name is gone before `write_new` returns; a crash may leave one, which a
listing shows like any other file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final

import pyarrow as pa

from icetree.errors import AlreadyExists, InvalidInput, NotFound, Unavailable
from icetree.store.base import FileInfo, check_range, in_turn, side_by_side
from icetree.store.places import local_path
from icetree.surroundings import elapsed_s, new_uuid, wait

#: How temporary names start: hidden from engines that list a folder for its data.
TEMPORARY: Final = ".icetree-"

_AT_ONCE: Final = 8
#: So many files at most are deleted one after the other.
_A_PART: Final = 32
#: How long another may have a folder for itself, and how often one looks.
_PATIENCE_S: Final = 30
_PAUSE_S: Final = 0.005
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_REFUSED: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP}
)


class LocalStore:
    """A store of `file:///path` and plain absolute paths."""

    def __init__(self) -> None:
        #: Folders that are known to be there, and durably so.
        self._folders: set[str] = set()
        self._lock = Lock()

    def read(self, location: str) -> bytes:
        with _asked(location):
            return Path(local_path(location)).read_bytes()

    def read_range(self, location: str, *, offset: int, length: int) -> bytes:
        check_range(location, offset, length)
        if not length:
            return b""
        with _asked(location), Path(local_path(location)).open("rb", buffering=0) as file:
            # Memory for all that is asked for is taken at once, whatever the file has.
            length = min(length, max(0, os.fstat(file.fileno()).st_size - offset))
            file.seek(offset)
            parts = []
            # A single read gives less than 2 GiB, whatever was asked for.
            while length and (part := file.read(length)):
                parts.append(part)
                length -= len(part)
            return parts[0] if len(parts) == 1 else b"".join(parts)

    def open(self, location: str) -> pa.NativeFile:
        with _asked(location):
            path = local_path(location)
            if Path(path).is_dir():
                raise IsADirectoryError(errno.EISDIR, "is a folder", path)
            return pa.OSFile(path, "r")

    def size(self, location: str) -> int:
        with _asked(location):
            path = Path(local_path(location))
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "is a folder", str(path))
            return path.stat().st_size

    def exists(self, location: str) -> bool:
        with _asked(location):
            return Path(local_path(location)).is_file()

    def write_new(self, location: str, content: bytes) -> None:
        path = local_path(location)
        if path.endswith("/"):
            raise InvalidInput(f"{location} names a folder, not a file")
        folder = str(Path(path).parent)
        with _asked(location):
            try:
                self._ensure(folder)
                _write_new(folder, path, content)
            except FileNotFoundError:
                # Somebody removed the folder since we last saw it.
                self._folders.discard(folder)
                self._ensure(folder)
                _write_new(folder, path, content)
            except NotADirectoryError as error:
                raise InvalidInput(f"{location} would lie below a file") from error

    def begin_new(self, location: str) -> LocalFile:
        path = local_path(location)
        if path.endswith("/"):
            raise InvalidInput(f"{location} names a folder, not a file")
        folder = str(Path(path).parent)
        with _asked(location):
            try:
                self._ensure(folder)
                return LocalFile(location, _Temporary(folder, path))
            except FileNotFoundError:
                self._folders.discard(folder)
                self._ensure(folder)
                return LocalFile(location, _Temporary(folder, path))
            except NotADirectoryError as error:
                raise InvalidInput(f"{location} would lie below a file") from error

    def write_many(self, files: Iterable[tuple[str, bytes]]) -> None:
        side_by_side(self.write_new, files, at_once=_AT_ONCE)

    def delete(self, locations: Iterable[str]) -> None:
        # A file system may wait for its journal at every file, and at several for the same one.
        names = list(locations)
        many = max(1, min(_A_PART, len(names) // _AT_ONCE))
        parts = (names[at : at + many] for at in range(0, len(names), many))
        side_by_side(_delete, zip(parts), at_once=_AT_ONCE)

    def list(self, folder: str) -> Iterator[FileInfo]:
        path, prefix = local_path(folder).rstrip("/") or "/", folder.rstrip("/") + "/"
        left = [(path, prefix)]
        while left:
            path, prefix = left.pop()
            entries: list[os.DirEntry[str]] = []
            gone = suppress(FileNotFoundError, NotADirectoryError)
            with _asked(prefix), gone, os.scandir(path) as found:
                entries = [*found]
            for entry in entries:
                if not _is_text(entry.name):
                    # No table can name it, nor anything below it.
                    continue
                if entry.is_dir(follow_symlinks=False):
                    left.append((entry.path, f"{prefix}{entry.name}/"))
                # A link to a folder is neither: what lies behind it is another place's.
                elif entry.is_file() and (info := _about(entry, prefix)):
                    yield info

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]

    def _ensure(self, folder: str) -> None:
        """Make a folder and those above it where they are missing; all of them durable."""
        if folder in self._folders:
            return
        with self._lock:
            if folder in self._folders:  # by a thread that was here first
                return
            missing = []
            there = Path(folder)
            while not there.is_dir():
                missing.append(there)
                there = there.parent
            # Another process may have made it a moment ago and not flushed it yet. Whatever lies
            # above was flushed before that, since folders are made from the top.
            with suppress(PermissionError):
                _flush_folder(str(there.parent))
            for new in reversed(missing):
                with suppress(FileExistsError):
                    new.mkdir()
                _flush_folder(str(new.parent))
            self._folders.add(folder)


def _is_text(name: str) -> bool:
    """Tell whether a name is text, and not bytes of another encoding."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _about(entry: os.DirEntry[str], prefix: str) -> FileInfo | None:
    """Return what a listing says of a file; nothing if it is gone again."""
    with _asked(entry.path), suppress(FileNotFoundError):
        about = entry.stat()
        return FileInfo(
            location=prefix + entry.name,
            size_bytes=about.st_size,
            modified_at_ms=about.st_mtime_ns // 1_000_000,
        )
    return None


def _delete(locations: Iterable[str]) -> None:
    in_turn(_unlink, zip(locations))


def _unlink(location: str) -> None:
    with _asked(location), suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(local_path(location))  # noqa: PTH108  # keeps the path as it is spelt


class LocalFile:
    """A file that is being written, on disk from the first byte on; for `store.base.NewFile`."""

    def __init__(self, location: str, file: _Temporary) -> None:
        self._location = location
        self._file = file
        # What Arrow holds of Python's no garbage collector sees: it must not lead back here.
        self._bytes = _Bytes(location, file)
        self._sink = pa.PythonFile(self._bytes, mode="w")

    @property
    def sink(self) -> pa.NativeFile:
        """What its bytes are written to."""
        return self._sink

    def written(self) -> pa.Buffer:
        if not self._bytes.tell():
            return pa.py_buffer(b"")
        with _asked(self._location), pa.memory_map(self._file.name) as file:
            return file.read_buffer()

    def end(self) -> None:
        with _asked(self._location):
            self._file.end()

    def abandon(self) -> None:
        self._bytes.are_wanted = False
        with suppress(OSError):
            self._file.forget()


class _Bytes:
    """The bytes of a file that is being written, as Arrow writes them."""

    def __init__(self, location: str, file: _Temporary) -> None:
        self._location = location
        self._file = file
        self._size = 0
        self.are_wanted = True
        self.closed = False

    def write(self, content: bytes) -> int:
        """Take bytes, as a file does; those of who ends a file that was abandoned go nowhere."""
        if self.are_wanted:
            with _asked(self._location):
                self._file.write(content)
        self._size += len(content)
        return len(content)

    def tell(self) -> int:
        """Tell how many bytes came."""
        return self._size

    def flush(self) -> None:
        """Do nothing: what has no name yet need not last."""


def _write_new(folder: str, path: str, content: bytes) -> None:
    file = _Temporary(folder, path)
    try:
        file.write(content)
        file.end()
    finally:
        file.forget()


class _Temporary:
    """A file that has another name until all of it is durable."""

    def __init__(self, folder: str, path: str) -> None:
        self._folder, self._path = folder, path
        self.name = f"{folder}/{TEMPORARY}{new_uuid()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._opened: int | None = os.open(self.name, flags, 0o666)
        self._is_there = True

    def write(self, content: bytes) -> None:
        """Add bytes."""
        assert self._opened is not None
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._opened, rest) :]

    def end(self) -> None:
        """Give the file its own name, unless another has it."""
        assert self._opened is not None
        os.fsync(self._opened)
        self._close()
        _give_name(self._folder, self.name, self._path)
        self._unlink()
        _flush_folder(self._folder)

    def forget(self) -> None:
        """Leave nothing under the other name."""
        try:
            self._close()
        finally:
            self._unlink()

    def _close(self) -> None:
        if self._opened is not None:
            opened, self._opened = self._opened, None
            os.close(opened)

    def _unlink(self) -> None:
        if not self._is_there:
            return
        self._is_there = False
        with suppress(FileNotFoundError):
            os.unlink(self.name)  # noqa: PTH108  # as the calls around it


def _give_name(folder: str, temporary: str, path: str) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _rename_new(folder, temporary, path)


def _rename_new(folder: str, temporary: str, path: str) -> None:
    """Do what a link does on a file system without links.

    A rename would replace a file, so look first, under a lock that a crash releases.
    """
    lock = os.open(folder, os.O_RDONLY)
    try:
        _await_lock(lock, folder)
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        os.rename(temporary, path)  # noqa: PTH104  # as the calls around it
    finally:
        os.close(lock)


def _await_lock(lock: int, folder: str) -> None:
    """Have a folder for oneself, as soon as another lets go of it; not for ever."""
    import fcntl

    give_up = elapsed_s() + _PATIENCE_S
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if elapsed_s() >= give_up:
                raise Unavailable(
                    f"another process has had {folder} for itself for {_PATIENCE_S} s, which has no "
                    "links: see whether one stands still"
                ) from None
        wait(_PAUSE_S)


def _flush_folder(folder: str) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def _asked(location: str) -> Iterator[None]:
    """Turn what the system says into what a caller can act on, naming the location."""
    try:
        yield
    except FileExistsError as error:
        raise AlreadyExists(f"{location} already exists") from error
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise NotFound(f"{location} does not exist, or is no file") from error
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _REFUSED:
            raise InvalidInput(f"{location} cannot be used: {reason}") from error
        raise Unavailable(f"the disk failed at {location}: {reason}") from error
