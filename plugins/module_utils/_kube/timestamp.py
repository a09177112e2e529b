# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times of the API server (``2026-11-22T12:00:00Z``) and Unix times. Pure."""

from __future__ import annotations

import datetime
import re

_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
# Leases and what Go writes have fractions of a second.
_FRACTION = re.compile(r"\.[0-9]+(?=Z\Z)")


def unix_time(timestamp: object) -> float | None:
    """Return a timestamp of the API server as Unix time, in whole seconds; None for others."""
    try:
        moment = datetime.datetime.strptime(_FRACTION.sub("", str(timestamp)), _FORMAT)
    except ValueError:
        return None
    return moment.replace(tzinfo=datetime.timezone.utc).timestamp()


def timestamp(unix: float) -> str:
    """Return a Unix time as the API server writes it."""
    return datetime.datetime.fromtimestamp(unix, datetime.timezone.utc).strftime(_FORMAT)
