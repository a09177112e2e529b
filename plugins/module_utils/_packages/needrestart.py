# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""needrestart, whose hook of apt restarts services after each change of packages.

The hook is suspended for this collection's changes, since it would restart container runtimes and
with them, depending on their configuration, the containers. What it would have restarted is listed.
"""

from __future__ import annotations

import re

from .._host.command import Runner

# With any value the hook of apt ends before it starts needrestart (needrestart 3.6, Debian 12,
# usr/lib/needrestart/apt-pinvoke, read 2026-11-27). The next change of packages by somebody else
# then reads all services again.
ENVIRONMENT = {"NEEDRESTART_SUSPEND": "1"}
# Batch mode prints, and restarts nothing; -l reads libraries only, and -r l is the mode "list".
_COMMAND = ("needrestart", "-b", "-l", "-r", "l")
_SECONDS = 120
_SERVICE = re.compile(r"^NEEDRESTART-SVC: (\S+)$", re.MULTILINE)


def services_to_restart(run: Runner) -> tuple[str, ...]:
    """Return the services that use replaced files; none on a node without needrestart."""
    answer = run(_COMMAND, timeout=_SECONDS)
    return tuple(dict.fromkeys(_SERVICE.findall(answer.stdout))) if answer.ok else ()


def warning(services: tuple[str, ...]) -> str:
    return (
        "needrestart was suspended for this change of packages. These services use files that "
        f"were replaced: {', '.join(services)}. The roles restart container runtimes by their own "
        "rules; restart the others when it suits, for example with needrestart -r a."
    )
