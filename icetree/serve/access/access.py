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
from icetree.serve.protocol.refusals import Refused
from icetree.serve.protocol.request import Answer, Request

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
        name = self.tokens.read(token, self._proof_of)
        # A client that was taken from the file is nobody, whatever token it has.
        client = self.grants.clients.get(name) if name is not None else None
        return client.who if client is not None else self.grants.by_token(token)

    def _proof_of(self, name: str) -> str:
        """Return what the file has of a client: who gets another secret needs other tokens."""
        client = None if self.grants is None else self.grants.clients.get(name)
        return "" if client is None else f"{client.secret} {client.token}"

    def exchanged(self, request: Request) -> Answer:
        """Answer a request for a token, in OAuth2's own words.

        Who comes with a token that is good no more, such as one of a server that was stopped, and with
        credentials, as Iceberg Java does, gets another by these. A token of the file stays what it is.
        """
        try:
            form = dict(parse_qsl(request.body.decode("latin-1"), max_num_fields=20))
        except ValueError:
            return _refused(400, "invalid_request")
        if self.grants is None:
            return _given(self.tokens.give("anyone"))
        match form.get("grant_type"):
            case "client_credentials":
                who = self.grants.by_secret(*_credentials(form, request))
            case str(kind) if kind == _REFRESH:
                old = form.get("subject_token", "")
                if self.grants.by_token(old) is not None:
                    return _given(old)
                who = self._of(old) or self.grants.by_secret(*_credentials(form, request))
            case _:
                return _refused(400, "unsupported_grant_type")
        if who is None:
            return _refused(401, "invalid_client")
        return _given(self.tokens.give(who.name, self._proof_of(who.name)))


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


def _given(token: str) -> Answer:
    return Answer(
        document={
            "access_token": token,
            "token_type": "bearer",
            "expires_in": LIFETIME_S,
            "issued_token_type": _ACCESS_TOKEN,
        },
        headers={"cache-control": "no-store"},
    )


def _refused(status: int, error: str) -> Answer:
    told = {"error": error, "error_description": _TOLD[error]}
    return Answer(status=status, document=told, headers={"cache-control": "no-store"})
