"""Errors as the REST protocol tells them: a status and a type, in one table."""

from __future__ import annotations

from typing import Final

from icetree.errors import (
    AlreadyExists,
    CommitConflict,
    CommitUnknown,
    CorruptTable,
    IcetreeError,
    InvalidInput,
    NotFound,
    Unavailable,
    Unsupported,
)
from icetree.serve.protocol.request import Answer

#: Seconds after which a client that was turned away may come back.
RETRY_AFTER_S: Final = 1


class Refused(Exception):
    """A refusal for which our own errors have no word: its status and type are the protocol's."""

    def __init__(self, status: int, type: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.type = type


#: Error, status, type: the first that fits tells. What is not found has the type of its subject.
_TOLD: Final[tuple[tuple[type[IcetreeError], int, str], ...]] = (
    (NotFound, 404, ""),
    (AlreadyExists, 409, "AlreadyExistsException"),
    (CommitConflict, 409, "CommitFailedException"),
    (CommitUnknown, 504, "CommitStateUnknownException"),
    (Unavailable, 503, "ServiceUnavailableException"),
    (Unsupported, 406, "UnsupportedOperationException"),
    (CorruptTable, 422, "CorruptTableException"),
    (InvalidInput, 400, "BadRequestException"),
)

#: What goes with a status.
_HEADERS: Final = {
    401: {"www-authenticate": "Bearer"},
    429: {"retry-after": str(RETRY_AFTER_S)},
    503: {"retry-after": str(RETRY_AFTER_S)},
}

#: What is missing, by what a route is about.
NO_SUCH: Final = {
    "namespace": "NoSuchNamespaceException",
    "table": "NoSuchTableException",
    "view": "NoSuchViewException",
}


def refusal(error: BaseException, *, about: str = "table") -> Answer:
    """Return an error as an answer; one that nobody foresaw is told without its words."""
    if isinstance(error, Refused):
        return refused(error.status, error.type, str(error))
    for kind, status, type in _TOLD:
        if isinstance(error, kind):
            return refused(status, type or NO_SUCH[about], str(error))
    return refused(500, "InternalServerError", "the server failed: its log says why")


def refused(status: int, type: str, message: str) -> Answer:
    """Return a refusal as the protocol writes it."""
    told = {"message": message, "type": type, "code": status}
    return Answer(status=status, document={"error": told}, headers=_HEADERS.get(status, {}))
