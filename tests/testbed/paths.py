# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the testbed keeps its things: big ones in the user's cache, small ones in build/."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
# The fleet of this process: the ordinary one, or "drivers" (``--drivers``), a small one of its own.
FLEET = os.environ.get("KUBEGPU_FLEET") or "testbed"
# The run of the tests that this process is a part of (runs.py); empty for a person's commands.
RUN_VARIABLE = "KUBEGPU_TEST_RUN"
RUN_NAME = os.environ.get(RUN_VARIABLE, "")
RUN_LABEL = "kubegpu-testbed.run"
# A person's fleet and that of a run can be there at once.
_GIVEN = os.environ.get("KUBEGPU_TESTBED_NAME")
_OWN = "-test" if RUN_NAME and not _GIVEN else ""
BUILD = REPOSITORY / "build" / f"{_GIVEN or FLEET}{_OWN}"
# The engine is shared by all checkouts of a machine, so names in it have the checkout's own end.
_CHECKOUT = hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]
NAME = f"{_GIVEN or f'kubegpu-{FLEET}'}{_OWN}-{_CHECKOUT}"
INVENTORY = BUILD / "inventory.yml"

# Sockets need a short path, and nothing here has to survive a reboot.
RUN = Path(os.environ.get("KUBEGPU_TESTBED_RUN") or "/run/kubegpu-testbed")


def cache() -> Path:
    """The cache folder of this user, made if missing."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(base) / "kubegpu"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """One process at a time builds or starts what several checkouts share."""
    with (cache() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
