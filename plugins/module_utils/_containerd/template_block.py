# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The managed block of a distribution's template for containerd's configuration. Pure."""

from __future__ import annotations

import re

from .._core.errors import KubegpuError
from .._core.versions import find_version, upstream_numbers

BASE = '{{ template "base" . }}\n'
BEGIN = "# BEGIN kubegpu.nodes"
END = "# END kubegpu.nodes"
_MARKED = re.compile(rf"(?ms)^{re.escape(BEGIN)}[ \t]*\n(.*?)^{re.escape(END)}[ \t]*(?:\n|\Z)")
# k3s and RKE2 provide a template named "base" from these patch releases on, and in all newer minor
# releases (docs of k3s, "Advanced options").
_BASE_SINCE = {(1, 24): 17, (1, 25): 13, (1, 26): 8, (1, 27): 5, (1, 28): 1}


def managed_block(text: str | None) -> str | None:
    """Return the text between the marker lines, None if there are none."""
    found = _MARKED.search(text or "")
    return None if found is None else found[1]


def check_managed_block(path: str, text: str) -> None:
    """Check that a template has exactly one managed block.

    :raises KubegpuError: it has none or several.
    """
    places = len(_MARKED.findall(text))
    if places == 1:
        return
    raise KubegpuError(
        f"{path} is a template that this module did not create, and has {places or 'no'} "
        f"{'places' if places else 'place'} for this module: a Go template is only edited "
        "between two lines of its own.",
        evidence=f"looked for the lines {BEGIN!r} and {END!r}",
        next_step="Put these two lines at its end, one below the other, and run again.",
    )


def without_managed_block(text: str) -> str:
    """Return a rendered configuration without the managed block."""
    return _MARKED.sub("", text)


def with_managed_block(path: str, text: str | None, block: str | None) -> str | None:
    """Return the template with ``block`` as its managed block, or without one if it is None.

    Returns None if the template becomes equal to the default one and is not needed.

    :raises KubegpuError: the block contains template syntax.
    """
    if block is not None and "{{" in block:
        raise KubegpuError(
            f"'{{{{' cannot be written into {path}, which is a Go template.",
            next_step="Choose values without it.",
        )
    if text is None:
        return None if block is None else f"{BASE}\n{BEGIN}\n{block}{END}\n"
    if block is None or not block.strip():
        rest = without_managed_block(text)
        if rest.strip() == BASE.strip():
            # This is a template as this module starts it: without a block it has no effect.
            return None
        if block is None:
            return rest
    lines = f"{BEGIN}\n{block}{END}\n"
    return _MARKED.sub(lambda _found: lines, text)


def has_base_template(version: str) -> bool:
    """Return whether k3s or RKE2 with this ``--version`` output has the template ``base``."""
    numbers = upstream_numbers(find_version(version))
    if not numbers[2:]:
        return False
    major, minor, patch = numbers
    if (major, minor) > max(_BASE_SINCE):
        return True
    return patch >= _BASE_SINCE.get((major, minor), patch + 1)
