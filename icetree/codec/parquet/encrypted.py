"""Parquet's modular encryption, of files with one key for the footer and all columns."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from icetree.codec.encryption.gcm import OVERHEAD, Cipher, NotAuthentic
from icetree.codec.encryption.key_metadata import FileKey
from icetree.codec.parquet.thrift import BINARY, STRUCT, Broken, Fields, Struct, Wanted, read_struct
from icetree.errors import CorruptTable, Unsupported

#: What a file with an encrypted footer begins and ends with.
MAGIC: Final = b"PARE"

_PLAIN: Final = b"PAR1"
_LENGTH: Final = struct.Struct("<I")
# Field ids of the Parquet format.
_ALGORITHM, _FILE_UNIQUE = 1, 2
_KIND: Final = Wanted(STRUCT, fields={_FILE_UNIQUE: Wanted(BINARY)})
#: AES_GCM_V1 and AES_GCM_CTR_V1, which differ in pages alone.
_KINDS: Final[Fields] = {1: _KIND, 2: _KIND}
_CRYPTO: Final[Fields] = {_ALGORITHM: Wanted(STRUCT, fields=_KINDS)}
#: What is authenticated with a footer, after the two prefixes of the file.
_FOOTER_MODULE: Final = b"\0"


def decrypted_footer(content: bytes, key: FileKey, *, file: str) -> bytes:
    """Return the plain footer in what stands where a plain file has its own."""
    try:
        crypto, at = read_struct(content, 0, _CRYPTO)
    except Broken as error:
        raise CorruptTable(file, f"broken Parquet footer: {error}") from None
    if len(crypto.get(_ALGORITHM, ())) != 1 or len(content) < at + _LENGTH.size + OVERHEAD:
        raise CorruptTable(file, "broken Parquet footer: it does not say how it is encrypted")
    (length,) = _LENGTH.unpack_from(content, at)
    sealed = content[at + _LENGTH.size :]
    try:
        if length != len(sealed):
            raise NotAuthentic
        return Cipher(key.key).decrypt(sealed, _footer_aad(crypto, key))
    except NotAuthentic:
        raise CorruptTable(
            file,
            "its footer is not what was encrypted with its key: it is damaged, or another's",
        ) from None


def with_footer(end: bytes, key: FileKey, change: Callable[[bytes], bytes]) -> bytes:
    """Return the end of an encrypted file with another footer.

    `change` is handed the end as it would be in a plain file, and returns it so.
    """
    length = _LENGTH.unpack(end[-8:-4])[0]
    before, content = end[: -8 - length], end[-8 - length : -8]
    plain = decrypted_footer(content, key, file="a new file")
    found = change(before + plain + _LENGTH.pack(len(plain)) + _PLAIN)
    footer = found[len(before) : -8]
    crypto, at = read_struct(content, 0, _CRYPTO)
    sealed = Cipher(key.key).encrypt(footer, _footer_aad(crypto, key))
    content = content[:at] + _LENGTH.pack(len(sealed)) + sealed
    return before + content + _LENGTH.pack(len(content)) + MAGIC


def _footer_aad(crypto: Struct, key: FileKey) -> bytes:
    [kind] = crypto[_ALGORITHM].values()
    return key.aad_prefix + bytes(kind.get(_FILE_UNIQUE, b"")) + _FOOTER_MODULE


def for_reading(key: FileKey) -> Any:
    """Return how pyarrow is told to decrypt a file."""
    return _pyarrow().create_decryption_properties(key.key, aad_prefix=key.aad_prefix)


def for_writing(key: FileKey) -> Any:
    """Return how pyarrow is told to encrypt a file, footer and all."""
    # The prefix is kept apart from the file: so no other can stand in its place.
    return _pyarrow().create_encryption_properties(
        key.key, aad_prefix=key.aad_prefix, store_aad_prefix=False
    )


def _pyarrow() -> Any:
    # Late: most tables are not encrypted.
    from pyarrow.parquet import encryption

    if not hasattr(encryption, "create_encryption_properties"):
        raise Unsupported(
            "encrypted data files need a newer pyarrow, which takes keys as they are: "
            "install icetree[encryption]"
        )
    return encryption
