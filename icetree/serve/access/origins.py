"""What a web page of elsewhere makes a browser send: refused where nobody needs a token.

A browser adds no token by itself, so where one is needed a page can do nothing. Where none is,
three things tell a client from a page: the name by which the server was reached, the page's origin,
and a content type that no page may send without asking first.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from icetree.serve.protocol.refusals import Refused
from icetree.serve.protocol.request import JSON, Request

#: Methods that change nothing, so that a link from anywhere may lead to them.
_LINKED: Final = frozenset({"GET", "HEAD"})
#: What a browser says of a request that our own page made, or whoever typed the address.
_OWN: Final = frozenset({"same-origin", "none"})


def require_here(request: Request) -> None:
    """Refuse with 403 who asks for a host that is not this machine.

    A page of elsewhere may have its own name lead here, and so ask as if it were ours: its browser
    then still tells that name.
    """
    if not _is_here(_host(request.base)):
        raise Refused(
            403,
            "ForbiddenException",
            "this is for the machine that it runs on, as localhost or 127.0.0.1",
        )


def require_own(request: Request) -> None:
    """Refuse with 403 what a page of another origin asks for; links may lead to what only tells."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "none")
    is_link = request.method in _LINKED and request.headers.get("sec-fetch-mode") == "navigate"
    is_ours = origin is None or (bool(request.base) and _place(origin) == _place(request.base))
    if not is_ours or (site not in _OWN and not is_link):
        raise Refused(403, "ForbiddenException", "pages of another origin are not answered")


def require_json(request: Request) -> None:
    """Refuse with 415 a body that does not say that it is JSON."""
    told = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.has_body and told != JSON:
        raise Refused(
            415, "UnsupportedMediaTypeException", f"send the body with Content-Type: {JSON}"
        )


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _host(base: str) -> str:
    try:
        return urlsplit(base).hostname or ""
    except ValueError:  # such as a bracket that is never closed
        return ""


def _place(origin: str) -> str:
    """Return host and port; a proxy with TLS may stand before us, so the scheme tells nothing."""
    return origin.partition("://")[2].lower()
