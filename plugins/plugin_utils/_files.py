# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write files of a report on the controller."""

from __future__ import annotations

import os
import tempfile

from ansible.errors import AnsibleActionFail


def write_text(dest: str, text: str) -> None:
    """Write a text as a file (:func:`write_bytes`).

    :raises AnsibleActionFail: it cannot be written.
    """
    write_bytes(dest, text.encode())


def write_bytes(dest: str, content: bytes) -> None:
    """Write a file, in one step, in a folder that is made if it does not exist.

    :raises AnsibleActionFail: it cannot be written.
    """
    # Links are followed, and only a regular file is replaced: /dev/null must remain a device.
    target = os.path.realpath(dest)
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as handle:
                handle.write(content)
            return
        folder = os.path.dirname(target)
        os.makedirs(folder, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(content)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise AnsibleActionFail(
            f"{dest} cannot be written on the controller: {error}. Next step: give a path that "
            "you may write to."
        ) from error
