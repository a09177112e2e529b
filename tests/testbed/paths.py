# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the testbed keeps its things: big ones in the user's cache, small ones in build/."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
# The fleet of this process: the ordinary one, or "drivers" (``--drivers``), a small one of its own.
FLEET = os.environ.get("KUBEGPU_FLEET") or "testbed"
BUILD = REPOSITORY / "build" / (os.environ.get("KUBEGPU_TESTBED_NAME") or FLEET)
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
