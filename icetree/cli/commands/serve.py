"""`icetree serve`: the REST catalog on a port."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import pass_lake
from icetree.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    from icetree.serve.access.access import Access
    from icetree.serve.http.run import Address, Tls
    from icetree.table.lake import Lake


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8181, show_default=True, help="The port; 0 is any that is free.")
@click.option("--grants", metavar="FILE", help="Clients, and what they may read and write.")
@click.option(
    "--token-key",
    metavar="FILE",
    help="What tokens are signed with; else ICETREE_TOKEN_KEY, else a key that is kept beside the grants.",
)
@click.option(
    "--anyone", is_flag=True, help="Let in whoever reaches the server, and let them do all."
)
@click.option("--tls-cert", metavar="FILE", help="The server's certificate, with its chain.")
@click.option("--tls-key", metavar="FILE", help="The key of the certificate.")
@click.option("--tls-client-ca", metavar="FILE", help="Clients need certificates of this one.")
@click.option("--workers", default=16, show_default=True, help="How many requests at a time.")
@click.option(
    "--plan-seconds", default=60.0, show_default=True, help="How long planning a scan may take."
)
@click.option(
    "--submit-seconds",
    default=10.0,
    show_default=True,
    help="How long a client waits for a plan before it is told to ask for it again.",
)
@click.option(
    "--former-seconds",
    default=1.0,
    show_default=True,
    help="How long a client waits for manifests of former snapshots before they are made without it.",
)
@click.option("--quiet", is_flag=True, help="Write no line for each request.")
@click.option("--new-secret", is_flag=True, help="Only make a secret for a client, and show it.")
@pass_lake
def serve(
    chosen: Chosen,
    host: str,
    port: int,
    grants: str | None,
    token_key: str | None,
    anyone: bool,
    tls_cert: str | None,
    tls_key: str | None,
    tls_client_ca: str | None,
    workers: int,
    plan_seconds: float,
    submit_seconds: float,
    former_seconds: float,
    quiet: bool,
    new_secret: bool,
) -> None:
    """Serve the catalog to every Iceberg client, by the REST protocol."""
    try:
        from icetree.serve.access.access import Access
        from icetree.serve.access.grants import read_grants
        from icetree.serve.access.tokens import Tokens
        from icetree.serve.http import run
        from icetree.serve.http.limits import Limits
        from icetree.serve.server import Server
    except ImportError as error:
        raise Unsupported(f"a server needs uvicorn: install icetree[serve] ({error})") from error

    if new_secret:
        _show_secret()
        return
    if workers < 1:
        raise InvalidInput(f"--workers {workers}: at least one is needed")
    if not plan_seconds > 0:
        raise InvalidInput(f"--plan-seconds {plan_seconds:g}: no plan is made in that time")
    _require_times({"--submit-seconds": submit_seconds, "--former-seconds": former_seconds})
    known = None if grants is None else read_grants(grants)
    key = _key_for_tokens(token_key, grants)
    address = run.Address(host=host, port=port)
    if known is None and not anyone and not address.is_loopback:
        raise InvalidInput(
            f"others reach {host}: say with --grants who may do what, or with --anyone that all may"
        )
    tls = None
    if tls_cert or tls_key or tls_client_ca:
        if not (tls_cert and tls_key):
            raise InvalidInput("TLS needs both --tls-cert and --tls-key")
        tls = run.Tls(certificate=tls_cert, key=tls_key, client_authority=tls_client_ca)
        tls.check()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    if not quiet:
        logging.getLogger("icetree.access").setLevel(logging.INFO)
        logging.getLogger("icetree.serve").setLevel(logging.INFO)
    with chosen.open() as lake:
        listening = address.listen()
        access = Access(grants=known, tokens=Tokens(key), any_host=anyone)
        _show(lake, address, listening.getsockname()[1], grants, access, tls)
        server = Server(
            lake,
            access,
            plan_s=plan_seconds,
            submit_s=submit_seconds,
            former_s=former_seconds,
        )
        run.serve(server, listening, Limits(workers=workers), tls)
    click.echo("stopped; what was begun is finished")


def _key_for_tokens(file: str | None, grants: str | None) -> bytes | None:
    """Return the key that is given, else the one that is kept beside the grants."""
    from icetree.cli.output import say
    from icetree.serve.access.kept import kept_key
    from icetree.serve.access.tokens import read_key

    key = read_key(file)
    if key is None and grants is not None:
        key = kept_key(grants)
        if key is None:
            say(f"no key can be kept beside {grants}: tokens end with this server")
    return key


def _require_times(given: dict[str, float]) -> None:
    for option, seconds in given.items():
        if not seconds >= 0:
            raise InvalidInput(f"{option} {seconds:g}: give 0 or more")


def _show(
    lake: Lake,
    address: Address,
    port: int,
    file: str | None,
    access: Access,
    tls: Tls | None,
) -> None:
    """Show what is served, and how to reach it, on one screen."""
    from icetree.cli.output import say

    host = f"[{address.host}]" if ":" in address.host else address.host
    uri = f"{'https' if tls else 'http'}://{host}:{port}"
    grants = access.grants
    anyone = "anyone who reaches it" if access.any_host else "anyone on this machine"
    who = anyone if grants is None else f"{len(grants.clients)} clients of {file}"
    lines = {
        "serving": lake.catalog.name,
        "at": uri,
        "warehouse": lake.warehouse or "none, so no new tables",
        "open to": who,
        "PyIceberg": f'load_catalog("x", type="rest", uri="{uri}")',
        "Spark": f"spark.sql.catalog.x.type=rest, spark.sql.catalog.x.uri={uri}",
        "stop": "Ctrl-C; what was begun is finished",
    }
    for name, value in lines.items():
        say(f"{name:<10} {value}")
    if grants is not None and tls is None and not address.is_loopback:
        click.echo("tokens travel unprotected: give --tls-cert, or put a proxy with TLS before it")


def _show_secret() -> None:
    from icetree.serve.access.grants import digest_of, new_secret

    secret = new_secret()
    click.echo(f"for the client:         {secret}")
    click.echo(f"for the file of grants: {digest_of(secret)}")
