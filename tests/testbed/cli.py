# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands of the testbed: ``python -m tests.testbed COMMAND``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.testbed import validators
from tests.testbed.shell import TestbedError


def main(argv: Sequence[str]) -> int:
    """Do one command; 1 where it failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.testbed", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("validators", help="unpack containerd and dockerd of three releases")
    options = parser.parse_args(argv)
    try:
        if options.command == "validators":
            print(validators.validators())
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    return 0
