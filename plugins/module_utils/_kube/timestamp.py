# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times of the API server (``2026-11-22T12:00:00Z``) and Unix times. Pure."""

from __future__ import annotations

import datetime

_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def unix_time(timestamp: object) -> float | None:
    """Return a timestamp of the API server as Unix time; None for anything else."""
    try:
        moment = datetime.datetime.strptime(str(timestamp), _FORMAT)
    except ValueError:
        return None
    return moment.replace(tzinfo=datetime.timezone.utc).timestamp()


def timestamp(unix: float) -> str:
    """Return a Unix time as the API server writes it."""
    return datetime.datetime.fromtimestamp(unix, datetime.timezone.utc).strftime(_FORMAT)
