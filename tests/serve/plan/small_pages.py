"""A program: a server whose answers have three tasks each. Argument: the folder of its catalog."""

from __future__ import annotations

import sys

import icetree
from icetree.serve.http.run import Address, serve
from icetree.serve.server import Server

if __name__ == "__main__":
    folder = sys.argv[1]
    with icetree.connect(f"sqlite:///{folder}/c.db", warehouse=f"{folder}/lake") as lake:
        listening = Address(port=0).listen()
        sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        serve(Server(lake, plan_page=3), listening)
