# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which engine judges an input in the default tier."""

from __future__ import annotations

import zlib
from collections.abc import Sequence


def pick(what: str, variations: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return the engine, and the version of its configuration, that judges ``what``.

    The engine is chosen first: one that takes more versions is not met more often.
    """
    # The number in front makes the shares of the releases about even.
    number = zlib.crc32(f"266 {what}".encode())
    engines = sorted({engine for engine, _version in variations})
    engine = engines[number % len(engines)]
    versions = sorted({version for one, version in variations if one == engine})
    return engine, versions[number // len(engines) % len(versions)]
