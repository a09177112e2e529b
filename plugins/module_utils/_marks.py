# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The moment of a file, by which a change of it is seen.

Apart from ``_files``, since the facts need this alone: a node compiles all that is sent.
"""

from __future__ import annotations

import os


def mark(path: str) -> str | None:
    """Return a name for the file as it is now, None where nothing is there.

    Whatever is done to it leaves another one: nobody can set the change time back.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    return ":".join(
        str(number)
        for number in (
            *(status.st_dev, status.st_ino, status.st_mode, status.st_size),
            *(status.st_mtime_ns, status.st_ctime_ns),
        )
    )
