"""From a request to who it is of; and OAuth2's exchange of a secret, or an old token, for a token."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote_plus

from icetree.serve.access.grants import Grants
from icetree.serve.access.origins import require_here, require_json, require_own
from icetree.serve.access.tokens import LIFETIME_S, Tokens
from icetree.serve.access.who import ANYONE, Who
from icetree.serve.refusals import Refused
from icetree.serve.request import Answer, Request

_REFRESH = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may come in. Without grants anyone on this machine may, and do all."""

    grants: Grants | None = None
    tokens: Tokens = field(default_factory=Tokens)
    #: Whether without grants the server may be reached by any name, and so from anywhere.
    any_host: bool = False

    def require_no_page(self, request: Request, *, takes_json: bool) -> None:
        """Refuse what a web page of elsewhere makes a browser send: 403, or 415 for its body."""
        if self.grants is not None:
            return
        if not self.any_host:
            require_here(request)
        require_own(request)
        if takes_json:
            require_json(request)

    def who(self, request: Request) -> Who:
        """Return who asks; Refused with 401 where that is not known."""
        if self.grants is None:
            return ANYONE
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        found = self._of(token.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise Refused(
                401, "NotAuthorizedException", "a token is needed that is good: ask for one again"
            )
        return found

    def _of(self, token: str) -> Who | None:
        if self.grants is None:
            return None
        name = self.tokens.read(token)
        # A client that was taken from the file is nobody, whatever token it has.
        client = self.grants.clients.get(name) if name is not None else None
        return client.who if client is not None else self.grants.by_token(token)

    def exchanged(self, request: Request) -> Answer:
        """Answer a request for a token, in OAuth2's own words."""
        try:
            form = dict(parse_qsl(request.body.decode("latin-1"), max_num_fields=20))
        except ValueError:
            return _refused(400, "invalid_request")
        if self.grants is None:
            return _given("anyone", self.tokens)
        match form.get("grant_type"):
            case "client_credentials":
                who = self.grants.by_secret(*_credentials(form, request))
            case str(kind) if kind == _REFRESH:
                who = self._of(form.get("subject_token", ""))
            case _:
                return _refused(400, "unsupported_grant_type")
        if who is None:
            return _refused(401, "invalid_client")
        return _given(who.name, self.tokens)


_TOLD: Final = {
    "invalid_client": "the credentials are not known",
    "invalid_request": "the form cannot be read",
    "unsupported_grant_type": "client_credentials and token exchange are what there is",
}


def _credentials(form: dict[str, str], request: Request) -> tuple[str, str]:
    """Return a client's id and secret, from the form or the header that OAuth2 has for them."""
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic" and "client_secret" not in form:
        try:
            told = base64.b64decode(encoded.strip(), validate=True).decode()
        except (binascii.Error, ValueError):
            return "", ""
        name, _, secret = told.partition(":")
        return unquote_plus(name), unquote_plus(secret)
    return form.get("client_id", ""), form.get("client_secret", "")


def _given(name: str, tokens: Tokens) -> Answer:
    return Answer(
        document={
            "access_token": tokens.give(name),
            "token_type": "bearer",
            "expires_in": LIFETIME_S,
            "issued_token_type": _ACCESS_TOKEN,
        },
        headers={"cache-control": "no-store"},
    )


def _refused(status: int, error: str) -> Answer:
    told = {"error": error, "error_description": _TOLD[error]}
    return Answer(status=status, document=told, headers={"cache-control": "no-store"})
