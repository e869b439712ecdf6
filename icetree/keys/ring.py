"""The keys of one table: what its metadata holds, opened with the keeper's.

A root, as a manifest list, is encrypted with a key of its own. That key is in the table's metadata,
encrypted with a key encryption key of the table, which is there too, wrapped by the keeper. All else
is opened by what stands in manifests.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from icetree.codec.encryption.gcm import KEY_BYTES, Cipher, NotAuthentic, new_bytes
from icetree.errors import CorruptTable, InvalidInput
from icetree.keys.base import Keeper, Versioned
from icetree.spec.metadata.encryption import KEY_PROPERTY, data_key_bytes
from icetree.spec.metadata.metadata import EncryptionKey, TableMetadata
from icetree.surroundings import now_ms

#: When a key encryption key was made; Iceberg Java's name.
TIMESTAMP: Final = "KEY_TIMESTAMP"
#: After two years a key encryption key is used for nothing new, as Iceberg Java has it (NIST SP 800-57).
LIFESPAN_MS: Final = 730 * 24 * 3600 * 1000
_ID_BYTES: Final = 16


class Ring:
    """What opens the roots of one table, as far as its metadata was seen."""

    def __init__(
        self,
        keeper: Keeper | None = None,
        handed: Mapping[str, bytes] | None = None,
        refuses_plain: bool = False,
    ) -> None:
        self._keeper = keeper
        #: Whether each file that is not table metadata must be encrypted.
        self._refuses_plain = refuses_plain
        #: What some keys of the metadata open, in a process that has no keeper.
        self._handed = dict(handed or {})
        self._known: dict[str, EncryptionKey] = {}
        #: Key encryption keys that were unwrapped.
        self._open: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"Ring({self._keeper!r})"

    def __reduce__(self) -> tuple[type[Ring], tuple[None, dict[str, bytes], bool]]:
        # The keeper's own keys stay in the process that they were given to.
        return Ring, (None, self._handed, self._refuses_plain)

    def only(self, key_ids: Iterable[str | None]) -> Ring:
        """Return what opens some files and no other, to be sent to another process."""
        ids = {each for each in key_ids if each is not None}
        handed = {each: self.unlock(each, file=each) for each in ids}
        return Ring(handed=handed, refuses_plain=self._refuses_plain)

    def beside(self, metadata: TableMetadata) -> Ring:
        """Return the keys of another table, which the same keeper keeps."""
        return ring_of(metadata, self._keeper)

    def require_allowed(self, key: bytes | None, *, file: str) -> None:
        """Refuse a file without key metadata in a table that is encrypted: who forges one has no key."""
        if key is None and self._refuses_plain:
            raise CorruptTable(
                file,
                "by the table's metadata it is plain, but this table has a key "
                f"({KEY_PROPERTY}), and each file of it is encrypted",
            )

    def learn(self, keys: Iterable[EncryptionKey]) -> None:
        """Take in the keys of newer metadata of the table."""
        self._known |= {key.key_id: key for key in keys}

    def require(self, table_key: str) -> None:
        """Refuse a key that is not there, before a table is made that nobody could open."""
        self._kept_by(table_key).wrap(bytes(KEY_BYTES[0]), table_key)

    def unlock(self, key_id: str, *, file: str) -> bytes:
        """Return the key metadata of a file that is opened by a key of the table's metadata."""
        if key_id in self._handed:
            return self._handed[key_id]
        sealed = self._known.get(key_id)
        by = None if sealed is None else self._known.get(sealed.encrypted_by_id or "")
        if sealed is None or by is None:
            raise CorruptTable(file, f"it needs encryption key {key_id!r}, which the table lacks")
        cipher = Cipher(self._key_encryption_key(by, file))
        try:
            return cipher.decrypt(_bytes(sealed, file), _timestamp(by, file).encode())
        except NotAuthentic:
            raise CorruptTable(
                file, f"encryption key {key_id!r} is not what {by.key_id!r} encrypted"
            ) from None

    def lock(self, metadata: TableMetadata, key: bytes) -> tuple[TableMetadata, str]:
        """Return metadata that holds a file's key metadata, encrypted, and the id of it there."""
        metadata, by = self._current(metadata)
        cipher = Cipher(self._key_encryption_key(by, metadata.location))
        sealed = EncryptionKey(
            key_id=_new_id(),
            encrypted_key_metadata=_text(
                cipher.encrypt(key, _timestamp(by, metadata.location).encode())
            ),
            encrypted_by_id=by.key_id,
        )
        return _with(metadata, sealed), sealed.key_id

    def is_newest(self, metadata: TableMetadata) -> bool:
        """Tell whether all is wrapped by the table's key, in its newest version as far as that is told."""
        table_key = metadata.properties.get(KEY_PROPERTY)
        if not table_key:
            return True
        keeper = self._kept_by(table_key)
        wrapped = [key for key in metadata.encryption_keys if key.encrypted_by_id == table_key]
        return all(
            isinstance(keeper, Versioned)
            and keeper.is_newest(_bytes(key, metadata.location), table_key)
            for key in wrapped
        )

    def rotated(
        self, before: TableMetadata, after: TableMetadata, *, asked: bool = False
    ) -> TableMetadata:
        """Return metadata whose key encryption keys are wrapped by the table's key that it names.

        Where that is another key than before, both are asked for. Where it is the same, they are
        wrapped again if one is `asked` for that, and some are not of its newest version. What is new
        then has a key encryption key that whoever has the former one never could open.
        """
        was, now = (each.properties.get(KEY_PROPERTY) for each in (before, after))
        if not was or not now or (was == now and not (asked and not self.is_newest(after))):
            return after
        ids = {key.key_id for key in after.encryption_keys}
        keys = tuple(
            key if key.encrypted_by_id in ids else self._wrapped(key, now, after.location)
            for key in after.encryption_keys
        )
        return self._with_fresh(replace(after, encryption_keys=keys))[0]

    def _wrapped(self, key: EncryptionKey, table_key: str, file: str) -> EncryptionKey:
        content = self._kept_by(table_key).wrap(self._key_encryption_key(key, file), table_key)
        return replace(key, encrypted_key_metadata=_text(content), encrypted_by_id=table_key)

    def _current(self, metadata: TableMetadata) -> tuple[TableMetadata, EncryptionKey]:
        """Return the key encryption key for what is new, in metadata that has it."""
        table_key = metadata.properties[KEY_PROPERTY]
        # The newest: others may be of a former key of the table. Of two of one time, the later one.
        known = [
            (_made_at(key, metadata.location), at, key)
            for at, key in enumerate(metadata.encryption_keys)
            if key.encrypted_by_id == table_key and TIMESTAMP in (key.properties or {})
        ]
        if known:
            made_at, _, newest = max(known, key=lambda each: each[:2])
            if now_ms() - made_at < LIFESPAN_MS:
                return metadata, newest
        return self._with_fresh(metadata)

    def _with_fresh(self, metadata: TableMetadata) -> tuple[TableMetadata, EncryptionKey]:
        """Return a new key encryption key, in metadata that has it."""
        table_key = metadata.properties[KEY_PROPERTY]
        length = data_key_bytes(metadata.properties)
        assert length is not None
        fresh = new_bytes(length)
        made = EncryptionKey(
            key_id=_new_id(),
            encrypted_key_metadata=_text(self._kept_by(table_key).wrap(fresh, table_key)),
            encrypted_by_id=table_key,
            properties={TIMESTAMP: str(now_ms())},
        )
        self._open[made.key_id] = fresh
        return _with(metadata, made), made

    def _key_encryption_key(self, key: EncryptionKey, file: str) -> bytes:
        if key.key_id not in self._open:
            table_key = key.encrypted_by_id
            if table_key is None:
                raise CorruptTable(
                    file, f"nobody is told who wrapped encryption key {key.key_id!r}"
                )
            found = self._kept_by(table_key).unwrap(_bytes(key, file), table_key)
            if len(found) not in KEY_BYTES:
                raise CorruptTable(file, f"encryption key {key.key_id!r} has {len(found)} bytes")
            self._open[key.key_id] = found
        return self._open[key.key_id]

    def _kept_by(self, table_key: str) -> Keeper:
        if self._keeper is None:
            raise InvalidInput(
                f"the table is encrypted with key {table_key!r}, and this connection has no keys: "
                "connect with encryption.key-file or encryption.kms-type"
            )
        return self._keeper


def ring_of(metadata: TableMetadata, keeper: Keeper | None) -> Ring:
    """Return the keys of a table, as its metadata has them."""
    ring = Ring(keeper, refuses_plain=bool(metadata.properties.get(KEY_PROPERTY)))
    ring.learn(metadata.encryption_keys)
    return ring


def _with(metadata: TableMetadata, key: EncryptionKey) -> TableMetadata:
    return replace(metadata, encryption_keys=(*metadata.encryption_keys, key))


def _new_id() -> str:
    return _text(new_bytes(_ID_BYTES))


def _text(content: bytes) -> str:
    return b64encode(content).decode()


def _bytes(key: EncryptionKey, file: str) -> bytes:
    try:
        return b64decode(key.encrypted_key_metadata, validate=True)
    except (NotBase64, ValueError):
        raise CorruptTable(file, f"encryption key {key.key_id!r} is no base64") from None


def _timestamp(key: EncryptionKey, file: str) -> str:
    found = (key.properties or {}).get(TIMESTAMP)
    if found is None:
        raise CorruptTable(file, f"encryption key {key.key_id!r} does not say when it was made")
    return found


def _made_at(key: EncryptionKey, file: str) -> int:
    text = _timestamp(key, file)
    if not (text.isascii() and text.isdigit()):
        raise CorruptTable(file, f"encryption key {key.key_id!r} was made at {text!r}, no time")
    return int(text)
