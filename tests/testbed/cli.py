# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands of the testbed: ``python -m tests.testbed COMMAND``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.testbed import engine, images, inventory, network, nodes, server, validators
from tests.testbed.fleet import FLEET, chosen
from tests.testbed.paths import INVENTORY
from tests.testbed.shell import TestbedError, say

_CALLS = "/var/lib/testbed/module-calls"


def main(argv: Sequence[str]) -> int:
    """Do one command; 1 where it failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.testbed", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (
        ("up", "bring up the fleet, its package repository and its inventory"),
        ("down", "remove the nodes and their network; caches and images stay"),
        ("demo", "the fleet from bare to ready, proven, and a second run"),
        ("demo-clean", "remove nodes, network, images and the engine that the testbed started"),
        ("status", "which nodes run"),
        ("validators", "unpack containerd and dockerd of three releases"),
    ):
        commands.add_parser(name, help=words)
    calls = commands.add_parser("calls", help="modules started on each node so far")
    calls.add_argument("--reset", action="store_true", help="count from nothing again")
    serve = commands.add_parser("serve", help="serve a folder to the nodes (used by up)")
    serve.add_argument("address")
    serve.add_argument("folder")
    options = parser.parse_args(argv)
    try:
        _do(options)
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    return 0


def _do(options: argparse.Namespace) -> None:
    if options.command == "up":
        _up()
    elif options.command == "down":
        _down()
    elif options.command == "demo":
        # Needs Ansible and grpcio, which the other commands do without.
        from tests.testbed.demo import demo  # noqa: PLC0415

        _up()
        demo()
    elif options.command == "demo-clean":
        _down()
        images.remove()
        engine.remove()
        say("removed; only the download cache is left")
    elif options.command == "status":
        for node in FLEET:
            print(f"{node.name}\t{'running' if nodes.is_running(node) else 'not there'}")
    elif options.command == "calls":
        for node in chosen():
            if options.reset:
                nodes.execute(node, "truncate", "--size=0", _CALLS)
            print(f"{node.name}\t{len(nodes.execute(node, 'cat', _CALLS).splitlines())}")
    elif options.command == "serve":
        server.serve(options.address, options.folder)
    else:
        print(validators.validators())


def _up() -> None:
    engine.up()
    missing = [node for node in chosen() if not nodes.is_running(node)]
    if missing:
        say(f"starting {', '.join(node.name for node in missing)}")
    nodes.up(chosen())
    server.up()
    inventory.write(chosen())
    say(f"the fleet is up; its inventory is {INVENTORY}")


def _down() -> None:
    say("removing the nodes")
    server.down()
    nodes.down(FLEET)
    network.remove()
    INVENTORY.unlink(missing_ok=True)
