# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of dnf 4 for the streams of modules. Pure."""

from __future__ import annotations

import configparser

# No stream is enabled, and dnf may take the default one.
NONE = ""
# No stream may be enabled. No name of a stream begins with an exclamation mark.
DISABLED = "!disabled"

FOLDER = "/etc/dnf/modules.d"


def module_file(module: str, stream: str) -> str:
    """Return the text of dnf's file for the state of a module."""
    state = {NONE: "", DISABLED: "disabled"}.get(stream, "enabled")
    name = stream if state == "enabled" else ""
    return f"[{module}]\nname={module}\nstream={name}\nprofiles=\nstate={state}\n"


def parse_module_file(module: str, text: str) -> str:
    """Return the enabled stream from the text of a module's file."""
    file = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        file.read_string(text)
    except configparser.Error:
        return NONE
    state = file.get(module, "state", fallback="").strip().lower()
    if state == "disabled":
        return DISABLED
    # dnf accepts "1" for enabled, too.
    return file.get(module, "stream", fallback="").strip() if state in ("enabled", "1") else NONE
