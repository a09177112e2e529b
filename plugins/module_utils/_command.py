# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run commands on the node: a callable that is passed in, so that domain code needs none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

# Parsed output must not depend on the user's language.
C_LOCALE = {"LC_ALL": "C", "LANG": "C", "LANGUAGE": "C"}
TIMED_OUT = 124


@dataclass(frozen=True)
class Result:
    """What a command answered. ``rc`` is 127 where the program does not exist, 124 on time-out."""

    rc: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        return self.rc == 0

    def words(self) -> str:
        """Return the last lines of what the command said, for an error's evidence."""
        text = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return "\n".join(text[-15:])


# argv, timeout in seconds -> Result
Runner = Callable[..., Result]


def module_runner(module: AnsibleModule) -> Runner:
    """Return a runner of list commands in the C locale, with a time limit, on the module's node.

    ``runner(argv, timeout=60, environment={})``; never raises for a command that fails.
    """

    def run(
        argv: Sequence[str], timeout: int = 60, environment: Mapping[str, str] | None = None
    ) -> Result:
        program = module.get_bin_path(argv[0], required=False)
        if program is None:
            return Result(127, "", f"{argv[0]}: no such program")
        limiter = module.get_bin_path("timeout", required=False)
        prefix = [limiter, "--kill-after=5", str(timeout)] if limiter else []
        rc, stdout, stderr = module.run_command(
            [*prefix, program, *argv[1:]],
            environ_update={**C_LOCALE, **(environment or {})},
            handle_exceptions=True,
            # An argument is what it is: a path or password with $ or ~ in it included.
            expand_user_and_vars=False,
            errors="surrogateescape",
        )
        return Result(rc, stdout, stderr)

    return run
