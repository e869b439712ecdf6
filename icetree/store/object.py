"""Files in an object store: S3 and whatever speaks its protocol, Google Cloud Storage, Azure.

One request per call wherever the protocol allows. Requests are retried here rather than in the
client: after an answer that was lost, a conditional put finds the name taken, and only who knows of
the earlier try can tell its own file from another's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from threading import Lock
from typing import Any, Final, TypeVar

import pyarrow as pa

from icetree.errors import (
    AlreadyExists,
    IcetreeError,
    InvalidInput,
    NotFound,
    Unavailable,
    Unsupported,
)
from icetree.store.base import FileInfo, NotDeleted, check_range, in_turn, side_by_side
from icetree.store.object_options import ObjectOptions, allowance_s
from icetree.store.ranged import ranged_file
from icetree.surroundings import between, elapsed_s, wait

T = TypeVar("T")

_AT_ONCE: Final = 16
_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 5.0
#: What `open` reads ahead from the end: the footer of all but the widest Parquet files.
_TAIL_BYTES: Final = 64 * 1024
#: Where the client asks a machine of the cloud for its role, when nobody gave it credentials.
_INSTANCE_METADATA: Final = re.compile(r"169\.254\.169\.254|metadata\.google\.internal")


class ObjectStore:
    """A store of buckets with keys; one connection pool per bucket, made at first use."""

    def __init__(self, options: ObjectOptions) -> None:
        self._options = options
        self._lock = Lock()
        self._buckets: dict[tuple[str, int, int], Any] = {}

    def read(self, location: str) -> bytes:
        size_bytes = 0

        def whole() -> bytes:
            nonlocal size_bytes
            bucket, key = self._place(location, size_bytes=size_bytes)
            found = bucket.get(key)
            # Known only now: what breaks off is asked for again with the time that so much takes.
            size_bytes = found.meta["size"]
            return bytes(found.bytes())

        return self._retried(location, whole, carries=lambda: size_bytes)

    def read_range(self, location: str, *, offset: int, length: int) -> bytes:
        check_range(location, offset, length)
        if not length:
            return b""
        bucket, key = self._place(location, size_bytes=length)
        try:
            return self._retried(
                location,
                lambda: bytes(bucket.get_range(key, start=offset, length=length)),
                carries=lambda: length,
            )
        except _PastTheEnd:
            return b""

    def open(self, location: str) -> pa.NativeFile:
        bucket, key = self._place(location)

        def last_bytes() -> tuple[int, bytes]:
            if not self._options.reads_from_the_end:
                size_bytes: int = bucket.head(key)["size"]
                start = max(0, size_bytes - _TAIL_BYTES)
                length = size_bytes - start
                if not length:
                    return 0, b""
                return size_bytes, bytes(bucket.get_range(key, start=start, length=length))
            found = bucket.get(key, options={"range": {"suffix": _TAIL_BYTES}})
            return found.meta["size"], bytes(found.bytes())

        try:
            size_bytes, tail = self._retried(location, last_bytes)
        except _PastTheEnd:
            size_bytes, tail = 0, b""
        return ranged_file(
            lambda offset, length: self.read_range(location, offset=offset, length=length),
            size_bytes=size_bytes,
            tail=tail,
        )

    def size(self, location: str) -> int:
        bucket, key = self._place(location)
        size_bytes: int = self._retried(location, lambda: bucket.head(key)["size"])
        return size_bytes

    def exists(self, location: str) -> bool:
        try:
            self.size(location)
        except NotFound:
            return False
        return True

    def write_new(self, location: str, content: bytes) -> None:
        bucket, key = self._place(location, size_bytes=len(content))
        mode = "create" if self._options.conditional_put else "overwrite"
        if mode == "overwrite" and self.exists(location):
            raise AlreadyExists(f"{location} already exists")
        tried_before = False

        def put() -> None:
            nonlocal tried_before
            try:
                bucket.put(key, content, mode=mode, use_multipart=False)
            except Exception as error:
                told = _told(error, location, self._options)
                if (
                    isinstance(told, AlreadyExists)
                    and tried_before
                    and self._holds(location, content)
                ):
                    return
                tried_before = True
                raise told from None

        self._retried(location, put, carries=lambda: len(content))

    def write_many(self, files: Iterable[tuple[str, bytes]]) -> None:
        side_by_side(self.write_new, files, at_once=_AT_ONCE)

    def delete(self, locations: Iterable[str]) -> None:
        keys: dict[str, dict[str, str]] = {}

        def put(location: str) -> None:
            bucket, key = self._named(location)
            keys.setdefault(bucket, {})[key] = location

        try:
            in_turn(put, zip(locations))
        finally:
            in_turn(self._delete, keys.items())

    def list(self, folder: str) -> Iterator[FileInfo]:
        name, below = self._options.place(folder)
        below = below.rstrip("/")
        if below:
            _check_key(folder, below)
        prefix = folder.rstrip("/")[: -len(below)] if below else folder.rstrip("/") + "/"
        # A broken stream cannot be taken up again here, so that the client retries each page.
        stream = self._bucket(name, retries=self._options.retries).list(below or None)
        while page := self._once(folder, lambda: next(stream, None)):
            for found in page:
                yield FileInfo(
                    location=prefix + found["path"],
                    size_bytes=found["size"],
                    modified_at_ms=int(found["last_modified"].timestamp() * 1000),
                )

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["options"])  # type: ignore[misc]

    def _delete(self, name: str, keys: Mapping[str, str]) -> None:
        """Delete keys of a bucket, which are told with their locations."""
        first = next(iter(keys.values()))
        try:
            self._retried(first, partial(_delete, self._bucket(name), [*keys]))
        except InvalidInput:
            if len(keys) == 1:
                raise
            # The others may not have had their turn: a client stops at what is refused.
            self._delete_alone(name, keys)

    def _delete_alone(self, name: str, keys: Mapping[str, str]) -> None:
        """Delete keys one by one: a few from all over first, and no other where these are refused alike."""
        bucket, every = self._bucket(name), [*keys.items()]
        refused: dict[str, InvalidInput] = {}

        def alone(key: str, at: str) -> None:
            try:
                self._retried(at, partial(_delete, bucket, [key]))
            except InvalidInput as error:
                refused[key] = error

        few = every[:: max(1, len(every) // _AT_ONCE)]
        side_by_side(alone, few, at_once=_AT_ONCE)
        why = {str(error).replace(keys[key], "").replace(key, "") for key, error in refused.items()}
        if len(refused) == len(few) < len(every) and len(why) == 1:
            raise NotDeleted(str(next(iter(refused.values()))), keys.values())
        side_by_side(alone, [each for each in every if each not in few], at_once=_AT_ONCE)
        for error in refused.values():
            raise error

    def _holds(self, location: str, content: bytes) -> bool:
        return self.size(location) == len(content) and self.read(location) == content

    def _place(self, location: str, *, size_bytes: int = 0) -> tuple[Any, str]:
        name, key = self._named(location)
        return self._bucket(name, size_bytes=size_bytes), key

    def _named(self, location: str) -> tuple[str, str]:
        name, key = self._options.place(location)
        _check_key(location, key)
        return name, key

    def _bucket(self, name: str, *, retries: int = 0, size_bytes: int = 0) -> Any:
        """Return the client for requests that carry so much: its time-out is all its requests'."""
        longer_s = allowance_s(size_bytes)
        with self._lock:
            found = self._buckets.get((name, retries, longer_s))
            if found is None:
                found = _connect(name, self._options, retries=retries, allowance_s=longer_s)
                self._buckets[name, retries, longer_s] = found
            return found

    def _once(self, location: str, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except IcetreeError:
            raise
        except Exception as error:
            # The client's own words may repeat the request, its token and all: they end here.
            raise _told(error, location, self._options) from None

    def _retried(
        self, location: str, ask: Callable[[], T], *, carries: Callable[[], int] = lambda: 0
    ) -> T:
        """Ask until there is an answer: a few times at most and not for long, with growing waits.

        What is known to carry so many bytes is asked again for longer, as each try may take longer.
        """
        give_up = elapsed_s() + self._options.retry_timeout_s
        wait_s = _FIRST_WAIT_S
        for _ in range(self._options.retries):
            try:
                return self._once(location, ask)
            except Unavailable:  # noqa: PERF203  # that is what the loop is for
                pause_s = wait_s * between(0.5, 1)
                if elapsed_s() + pause_s >= give_up + allowance_s(carries()):
                    raise
                wait(pause_s)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        return self._once(location, ask)


class _PastTheEnd(InvalidInput):
    """A range that starts at the end of the file or behind it."""


def _connect(bucket: str, options: ObjectOptions, *, retries: int, allowance_s: int) -> Any:
    try:
        from obstore import store as clients
        from obstore.exceptions import BaseError
    except ImportError as error:
        raise Unsupported(
            f"{options.extra} needs one more package: pip install 'icetree[{options.extra}]'"
        ) from error
    try:
        settings = options.client_settings(bucket, retries=retries, allowance_s=allowance_s)
        return getattr(clients, options.client)(**settings)
    except (BaseError, ValueError) as error:
        why = options.secrets.hide(_short(error))
        raise InvalidInput(f"{bucket!r} of {options.where} cannot be used: {why}") from None


def _delete(bucket: Any, keys: list[str]) -> None:
    try:
        bucket.delete(keys)
    except FileNotFoundError:
        # A few servers mind deleting what is not there, and then stop half-way.
        if len(keys) > 1:
            for key in keys:
                _delete(bucket, [key])


def _check_key(location: str, key: str) -> None:
    """Refuse keys that the client cannot name: it takes a key for a path."""
    if {"", ".", ".."} & set(key.split("/")):
        raise InvalidInput(
            f"{location!r} has an empty part, or one that is . or ..: no such key can be used"
        )


def _told(error: Exception, location: str, options: ObjectOptions) -> IcetreeError:
    """Return what a caller can act on; Unavailable is what may pass."""
    from obstore import exceptions as client

    status = _status(error)
    where = options.where
    short = options.secrets.hide(_short(error))
    if isinstance(error, FileNotFoundError | client.NotFoundError):
        missing = re.search("NoSuchBucket|ContainerNotFound", str(error))
        bucket = " (nor does its bucket)" if missing else ""
        return NotFound(f"{location} does not exist{bucket}")
    # A 409 of S3 says that another is writing there now, that of Azure that another has.
    is_taken = status != 409 or "BlobAlreadyExists" in str(error)
    if isinstance(error, client.AlreadyExistsError | client.PreconditionError) and is_taken:
        return AlreadyExists(f"{location} already exists")
    if status == 416:
        return _PastTheEnd(f"{location} ends before that range")
    if _INSTANCE_METADATA.search(str(error)):
        return InvalidInput(f"no credentials for {location}: set {options.credentials_hint}")
    if status in (401, 403) or isinstance(error, PermissionError):
        return InvalidInput(f"{where} refused {location}: {short}; check the credentials")
    if status == 501 or isinstance(error, NotImplementedError):
        advice = "if it knows no conditional put, set s3.conditional-put to false"
        return Unsupported(f"{where} cannot do what {location} needs: {short}; {advice}")
    if status and status < 500 and status not in (408, 409, 429):
        return InvalidInput(f"{where} refused {location}: {short}; check {options.check}")
    return Unavailable(
        f"{where} did not answer for {location}: {short}; check {options.check} and the network"
    )


def _status(error: Exception) -> int | None:
    found = re.search(r"status code: (\d{3})", str(error))
    return int(found[1]) if found else None


def _short(error: Exception) -> str:
    """Return the one line that says why: the server's own message where there is one."""
    text = str(error).partition("\n\nDebug source")[0]
    code = re.search(r"<Code>(.*?)</Code>", text)
    message = re.search(r"<Message>(.*?)</Message>", text)
    if code:
        return f"{code[1]} ({message[1]})" if message and message[1] else code[1]
    # Which request it was and how long it took is no news to who asked.
    return re.sub(r"^Generic \w+ error: Error performing \S+ \S+ in \S+ - ", "", text)
