# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands of the testbed: ``python -m tests.testbed COMMAND``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from tests.testbed import (
    calls,
    cluster,
    cluster_binaries,
    demo,
    engine,
    images,
    inventory,
    network,
    nodes,
    playbook,
    repository,
    runs,
    validators,
)
from tests.testbed.fleet import FLEET, RELEASES, chosen
from tests.testbed.paths import INVENTORY, cache
from tests.testbed.shell import TestbedError


def _engine(options: argparse.Namespace) -> None:
    (engine.up if options.what == "up" else engine.down)()


def _images(_options: argparse.Namespace) -> None:
    engine.up()
    images.images(RELEASES.values())


def _repo(_options: argparse.Namespace) -> None:
    engine.up()
    print(repository.up().url)


def _up(options: argparse.Namespace) -> None:
    engine.up()
    runs.sweep()
    if options.fresh:
        nodes.down(FLEET)
    served = repository.up()
    nodes.up(chosen())
    playbook.collections()
    print(inventory.write(chosen(), served))


def _inventory(_options: argparse.Namespace) -> None:
    print(inventory.write(chosen(), repository.up()))


def _down(_options: argparse.Namespace) -> None:
    """Nodes and network go; images, packages and the engine stay for the next time."""
    nodes.down(FLEET)
    repository.down()
    network.remove()
    INVENTORY.unlink(missing_ok=True)


def _clean(options: argparse.Namespace) -> None:
    if engine.answers():
        _down(options)
        if not nodes.others():
            images.remove()
    engine.remove()
    print(f"removed; what may be used again is in {cache()}")


def _status(_options: argparse.Namespace) -> None:
    if not engine.answers():
        print("no Docker daemon answers")
        return
    print(f"engine: {'of the testbed' if engine.is_own() else 'of this machine'}")
    for node in FLEET:
        print(f"{node.name}: {'running' if nodes.is_running(node) else 'not there'}")
    print(f"validators: {', '.join(validators.missing()) or 'none'} missing")


def _calls(options: argparse.Namespace) -> None:
    if options.reset:
        calls.reset(chosen())
    for name, number in calls.count(chosen()).items():
        print(f"{name} {number}")


def _validators(_options: argparse.Namespace) -> None:
    print(validators.validators())


def _kubernetes(_options: argparse.Namespace) -> None:
    print(cluster_binaries.standins().parent)


def _demo(_options: argparse.Namespace) -> None:
    engine.up()
    runs.sweep()
    demo.demo()


def _cluster_up(options: argparse.Namespace) -> None:
    engine.up()
    runs.sweep()
    cluster.up(fresh=options.fresh)


def _cluster_down(_options: argparse.Namespace) -> None:
    cluster.down()


def _cluster_clean(_options: argparse.Namespace) -> None:
    cluster.clean()


def _api_up(_options: argparse.Namespace) -> None:
    cluster.api_up()


def _api_down(_options: argparse.Namespace) -> None:
    cluster.api_down()


def main(argv: Sequence[str]) -> int:
    """Do one command; 1 where it failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.testbed", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(
        name: str, what: Callable[[argparse.Namespace], None], text: str
    ) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=text)
        one.set_defaults(action=what)
        return one

    command("engine", _engine, "start or stop the testbed's own Docker engine").add_argument(
        "what", choices=("up", "down")
    )
    command("images", _images, "make the node images")
    command("repo", _repo, "build and serve the package repository")
    command("up", _up, "start the fleet").add_argument(
        "--fresh", action="store_true", help="remove nodes that are there first"
    )
    command("inventory", _inventory, "write the inventory of the running fleet")
    command("down", _down, "remove nodes and network, keep what is cached")
    command("status", _status, "say what is there")
    command("calls", _calls, "module starts counted on the nodes").add_argument(
        "--reset", action="store_true"
    )
    command("validators", _validators, "unpack containerd and dockerd of three releases")
    command("demo", _demo, "take the bare fleet to proven GPU nodes, twice")
    command("kubernetes", _kubernetes, "build Kubernetes, where it is not there yet")
    command("cluster-up", _cluster_up, "start a real Kubernetes with three nodes").add_argument(
        "--fresh", action="store_true", help="remove what is there first"
    )
    command("cluster-down", _cluster_down, "remove it; keep the testbed's engine and images")
    command("cluster-clean", _cluster_clean, "remove it, and the testbed's engine if it is unused")
    command("api-up", _api_up, "start a real Kubernetes API server on loopback, without nodes")
    command("api-down", _api_down, "stop it and remove it")
    for name in ("demo-clean", "clean"):
        command(name, _clean, "remove the fleet, its images and the testbed's own engine")
    options = parser.parse_args(argv)
    try:
        options.action(options)
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
