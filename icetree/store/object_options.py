"""How to reach an object store, whichever it is: who asks, where, and how patiently."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Final

from icetree.errors import InvalidInput
from icetree.secrets import Secrets
from icetree.spec.properties.values import seconds, whole_number

CONNECT_TIMEOUT_S: Final = 5.0
REQUEST_TIMEOUT_S: Final = 10.0
RETRIES: Final = 5
RETRY_TIMEOUT_S: Final = 20.0

#: What every object store takes, below its own prefix.
PATIENCE: Final = (
    "connect-timeout",
    "request-timeout",
    "retry.num-retries",
    "retry.total-timeout",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectOptions(ABC):
    """What to connect with, and how patient to be. A subclass for each service."""

    #: What people call the service, the extra that installs its client, and its client's class.
    service: ClassVar[str]
    extra: ClassVar[str]
    client: ClassVar[str]
    #: What may be wrong where the service refuses, does not answer, or gets no credentials.
    check: ClassVar[str]
    credentials_hint: ClassVar[str]
    secret_variables: ClassVar[tuple[str, ...]]
    #: Credentials that may be shown.
    public: ClassVar[frozenset[str]] = frozenset()
    #: Whether the last bytes can be had without knowing how many there are.
    reads_from_the_end: ClassVar[bool] = True

    endpoint: str | None = None
    anonymous: bool = False
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    #: From the first byte sent to the last byte received, of one request that carries little.
    request_timeout_s: float = REQUEST_TIMEOUT_S
    retries: int = RETRIES
    #: After so long a request that got no answer is not asked again.
    retry_timeout_s: float = RETRY_TIMEOUT_S
    #: Off only for a server that does not know `If-None-Match`: existence is then checked first.
    conditional_put: bool = True

    @property
    def where(self) -> str:
        """Whom a message may blame."""
        return self.endpoint or self.service

    @property
    def secrets(self) -> Secrets:
        """What no message may show: these credentials, and those of the environment."""
        given = [value for name, value in self.credentials.items() if name not in self.public]
        return Secrets([*given, *(os.environ.get(name) for name in self.secret_variables)])

    @abstractmethod
    def place(self, location: str) -> tuple[str, str]:
        """Return the bucket and the key that a location names; InvalidInput."""

    @abstractmethod
    def settings(self, bucket: str) -> dict[str, Any]:
        """Return what the client of one bucket takes, beside what all clients do."""

    def client_settings(
        self, bucket: str, *, retries: int = 0, allowance_s: float = 0.0
    ) -> dict[str, Any]:
        """Return what obstore's client takes; it retries nothing by itself unless told.

        A request that carries much gets `allowance_s` more.
        """
        return {
            **self.credentials,
            **({"skip_signature": True} if self.anonymous else {}),
            **self.settings(bucket),
            "client_options": {
                "allow_http": bool(self.endpoint and self.endpoint.startswith("http:")),
                "connect_timeout": f"{round(self.connect_timeout_s * 1000)}ms",
                "timeout": f"{round((self.request_timeout_s + allowance_s) * 1000)}ms",
            },
            "retry_config": {
                "max_retries": retries,
                "retry_timeout": timedelta(seconds=self.retry_timeout_s),
            },
        }


def patience_of(properties: Mapping[str, str], prefix: str) -> dict[str, Any]:
    """Read how long requests may take, of the properties that start with a prefix."""
    connect, request, retries, total = (f"{prefix}.{name}" for name in PATIENCE)
    return {
        "connect_timeout_s": seconds(properties, connect, default=CONNECT_TIMEOUT_S),
        "request_timeout_s": seconds(properties, request, default=REQUEST_TIMEOUT_S),
        "retries": whole_number(properties, retries, default=RETRIES),
        "retry_timeout_s": seconds(properties, total, default=RETRY_TIMEOUT_S),
    }


def without_password(endpoint: str | None, name: str, instead: str) -> str | None:
    """Return the address of a service, which holds no password; `instead` says what does."""
    if endpoint and "@" in endpoint:
        raise InvalidInput(
            f"{name} holds a user name or password, which it has no use for: give "
            f"https://host:port there, and {instead}"
        )
    return endpoint


def allowance_s(size_bytes: int) -> int:
    """Return how much longer a request may take that carries so many bytes.

    A second for each MiB, rounded up to a power of two, so that few clients serve all sizes.
    """
    mebibytes = size_bytes >> 20
    return 1 << (mebibytes - 1).bit_length() if mebibytes else 0
