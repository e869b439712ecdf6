"""`icetree serve`: the REST catalog on a port."""

from __future__ import annotations

import click

from icetree.cli.lake import Chosen, pass_lake
from icetree.errors import Unsupported


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8181, show_default=True, help="The port; 0 is any that is free.")
@pass_lake
def serve(chosen: Chosen, host: str, port: int) -> None:
    """Serve the catalog to every Iceberg client, by the REST protocol."""
    try:
        from icetree.serve.run import Address
        from icetree.serve.run import serve as run
        from icetree.serve.server import Server
    except ImportError as error:
        raise Unsupported(f"a server needs uvicorn: install icetree[serve] ({error})") from error

    with chosen.open() as lake:
        listening = Address(host=host, port=port).listen()
        click.echo(f"serving {lake.catalog.name} on http://{host}:{listening.getsockname()[1]}")
        run(Server(lake), listening)
