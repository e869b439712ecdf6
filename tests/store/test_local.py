"""What a disk is told, in which order, and what a crash leaves."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from icetree.errors import AlreadyExists, InvalidInput, NotFound, Unavailable
from icetree.store.local import TEMPORARY, LocalStore
from icetree.surroundings import within
from tests.hasty import Hasty

Calls = list[tuple[str, str]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Record what reaches the system, by the name of the file or folder it is about."""
    made: Calls = []
    fsync, link, mkdir, unlink = os.fsync, os.link, os.mkdir, os.unlink

    def name(path: str) -> str:
        found = Path(path).name
        return "temporary" if found.startswith(TEMPORARY) else found

    def recorded_fsync(fd: int) -> None:
        made.append(("fsync", name(str(Path(f"/proc/self/fd/{fd}").readlink()))))
        fsync(fd)

    def recorded_link(old: str, new: str) -> None:
        made.append(("link", name(new)))
        link(old, new)

    def recorded_mkdir(path: str, *mode: int) -> None:
        made.append(("mkdir", name(path)))
        mkdir(path, *mode)

    def recorded_unlink(path: str) -> None:
        made.append(("unlink", name(path)))
        unlink(path)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "link", recorded_link)
    monkeypatch.setattr(os, "mkdir", recorded_mkdir)
    monkeypatch.setattr(os, "unlink", recorded_unlink)
    return made


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="names files by /proc")


@needs_proc
def test_the_bytes_are_flushed_before_the_name_and_the_name_after(
    tmp_path: Path, calls: Calls
) -> None:
    store = LocalStore()
    store.write_new(f"{tmp_path}/first", b"1")
    calls.clear()
    store.write_new(f"{tmp_path}/second", b"1")
    assert calls == [
        ("fsync", "temporary"),
        ("link", "second"),
        ("unlink", "temporary"),
        ("fsync", tmp_path.name),
    ]


@needs_proc
def test_new_folders_are_flushed_into_those_above_them_from_the_top(
    tmp_path: Path, calls: Calls
) -> None:
    LocalStore().write_new(f"{tmp_path}/a/b/file", b"1")
    assert calls[1:5] == [
        ("mkdir", "a"),
        ("fsync", tmp_path.name),
        ("mkdir", "b"),
        ("fsync", "a"),
    ]
    assert calls[-1] == ("fsync", "b")


@needs_proc
def test_a_folder_that_another_process_just_made_is_flushed_too(
    tmp_path: Path, calls: Calls
) -> None:
    (tmp_path / "made").mkdir()
    calls.clear()
    LocalStore().write_new(f"{tmp_path}/made/file", b"1")
    assert calls[0] == ("fsync", tmp_path.name)


@needs_proc
def test_files_written_side_by_side_flush_their_new_folder_once(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def slow(fd: int) -> None:
        time.sleep(0.02)  # so that all of them come before the first has made the folder
        fsync(fd)

    monkeypatch.setattr(os, "fsync", slow)
    LocalStore().write_many((f"{tmp_path}/new/{each}", b"1") for each in range(4))
    assert calls.count(("mkdir", "new")) == 1
    # Before the folder is made, and after.
    assert calls.count(("fsync", tmp_path.name)) == 1
    assert calls.count(("fsync", tmp_path.parent.name)) == 1


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int, _content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(Unavailable, match=r"wanted.*No space"):
        LocalStore().write_new(f"{tmp_path}/wanted", b"1")
    assert [*tmp_path.iterdir()] == []


def test_a_flush_that_fails_is_told_and_gives_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore()
    store.write_new(f"{tmp_path}/before", b"1")

    def broken(_fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(Unavailable, match="wanted"):
        store.write_new(f"{tmp_path}/wanted", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["before"]


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, content: write(fd, content[:7]))
    LocalStore().write_new(f"{tmp_path}/file", bytes(range(100)))
    assert (tmp_path / "file").read_bytes() == bytes(range(100))


def test_without_links_a_file_is_renamed_and_still_replaces_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(_old: str, _new: str) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    store = LocalStore()
    store.write_new(f"{tmp_path}/file", b"1")
    with pytest.raises(AlreadyExists, match="file"):
        store.write_new(f"{tmp_path}/file", b"2")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"1")]


def test_a_folder_removed_meanwhile_is_made_again(tmp_path: Path) -> None:
    store = LocalStore()
    store.write_new(f"{tmp_path}/folder/one", b"1")
    (tmp_path / "folder" / "one").unlink()
    (tmp_path / "folder").rmdir()
    store.write_new(f"{tmp_path}/folder/two", b"2")
    assert store.read(f"{tmp_path}/folder/two") == b"2"


def test_a_name_that_cannot_be_is_refused(tmp_path: Path) -> None:
    store = LocalStore()
    store.write_new(f"{tmp_path}/file", b"1")
    with pytest.raises(InvalidInput, match="below a file"):
        store.write_new(f"{tmp_path}/file/below", b"1")
    with pytest.raises(InvalidInput, match="too long"):
        store.write_new(f"{tmp_path}/{'n' * 300}", b"1")
    with pytest.raises(InvalidInput, match="folder"):
        store.write_new(f"{tmp_path}/folder/", b"1")
    with pytest.raises(NotFound):
        store.read(f"{tmp_path}/file/below")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_without_links_nobody_waits_without_end_for_who_has_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may be stopped just while it gives a file its name."""

    def no_links(_old: str, _new: str) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with within(Hasty()), pytest.raises(Unavailable, match="another process"):
            LocalStore().write_new(f"{tmp_path}/one", b"1")
    finally:
        os.close(held)
    assert not any(tmp_path.iterdir())
    LocalStore().write_new(f"{tmp_path}/one", b"1")
    assert (tmp_path / "one").read_bytes() == b"1"


def test_a_link_to_a_folder_is_neither_followed_nor_a_file_in_a_listing(tmp_path: Path) -> None:
    """Whoever deletes what is listed would cut off all that lies behind it."""
    store = LocalStore()
    store.write_new(f"{tmp_path}/t/file", b"1")
    (tmp_path / "t" / "loop").symlink_to(tmp_path / "t")
    assert [info.location for info in store.list(f"{tmp_path}/t")] == [f"{tmp_path}/t/file"]


def test_a_writer_killed_half_way_leaves_no_file_of_that_name(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from icetree.store.local import LocalStore\n"
        "write = os.write\n"
        # Slow and in small parts, so that the kill comes in the middle.
        "os.write = lambda fd, content: write(fd, content[:65536])\n"
        "LocalStore().write_new(sys.argv[1], bytes(4_000_000_000))\n"
    )
    final = tmp_path / "large"
    writer = subprocess.Popen([sys.executable, "-c", program, str(final)])
    try:
        give_up = time.monotonic() + 60
        while not (begun := _written(tmp_path)):
            assert time.monotonic() < give_up
            assert writer.poll() is None
            time.sleep(0.001)
        assert not final.exists()
    finally:
        writer.kill()
    assert writer.wait(60) == -signal.SIGKILL
    assert not final.exists()
    assert begun
    LocalStore().write_new(str(final), b"later")
    assert final.read_bytes() == b"later"
    left = {Path(info.location).name for info in LocalStore().list(str(tmp_path))} - {"large"}
    assert len(left) == 1
    assert left.pop().startswith(TEMPORARY)


def _written(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
