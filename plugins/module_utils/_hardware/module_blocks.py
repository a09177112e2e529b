# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings that keep a kernel module from being loaded: of modprobe and of the kernel. Pure.

modprobe.d(5), kernel-parameters.txt and dracut.cmdline(7), read 2026-11-27: a ``blacklist`` stops
what loads by alias, as udev does; a load by name still works. ``install`` with false, ``alias ...
off``, and the kernel's own ``module_blacklist`` stop that, too. ``rd.driver.blacklist`` counts in
the initial RAM disk only. With ``nomodeset``, the drivers below refuse to start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

COMMAND_LINE = "kernel command line"
NOMODESET = "nomodeset"
#: The modules that a node's GPUs need for containers, by vendor. Debian renames NVIDIA's.
MODULES: Mapping[str, tuple[str, ...]] = {
    "nvidia": ("nvidia", "nvidia_uvm", "nvidia_current", "nvidia_current_open"),
    "amd": ("amdgpu",),
    "intel": ("i915", "xe"),
}
_NEED_MODESET = frozenset({"amdgpu", "i915", "xe"})
_PARAMETER = re.compile(
    r"(?<!\S)(?:modprobe\.blacklist|module_blacklist|rd\.driver\.blacklist)=(?P<names>\S*)"
)
_SETTING = re.compile(
    r"^[ \t]*(?P<text>blacklist[ \t]+(?P<blacklist>\S+)"
    r"|install[ \t]+(?P<install>\S+)[ \t]+(?:\S*/)?(?:false|true)(?=[ \t]*(?:#|$))"
    r"|alias[ \t]+(?P<alias>\S+)[ \t]+off\b)",
    re.M,
)
_BY_NAME = ("install", "alias", "module_blacklist", NOMODESET)
_IN_INITRAMFS = "rd.driver.blacklist"


def find_blocks(
    modules: Iterable[str], files: Mapping[str, str], command_line: str
) -> dict[str, list[dict[str, str]]]:
    """Return what blocks each of the modules that is blocked: ``place`` and ``setting``.

    :param files: the text of each file of modprobe.d, by path.
    """
    found: dict[str, list[dict[str, str]]] = {}
    wanted = frozenset(modules)
    for path, text in files.items():
        for match in _SETTING.finditer(text.replace("\\\n", " ")):
            name = _plain(match["blacklist"] or match["install"] or match["alias"])
            if name in wanted:
                setting = " ".join(match["text"].split())
                found.setdefault(name, []).append({"place": path, "setting": setting})
    for match in _PARAMETER.finditer(command_line):
        for name in sorted(wanted & {_plain(one) for one in match["names"].split(",")}):
            word = {"place": COMMAND_LINE, "setting": match[0]}
            found.setdefault(name, []).append(word)
    if NOMODESET in command_line.split():
        for name in sorted(wanted & _NEED_MODESET):
            word = {"place": COMMAND_LINE, "setting": NOMODESET}
            found.setdefault(name, []).append(word)
    return found


def _plain(name: str) -> str:
    # modprobe treats dashes and underscores alike.
    return name.replace("-", "_")


def blocks_of(
    node: Mapping[str, Any], modules: Iterable[str], *, early: bool = False
) -> list[Mapping[str, str]]:
    """Return what blocks one of the modules on a node, each setting once.

    :param node: the fact ``gpu_node``; that of an earlier release does not have them.
    :param early: return what counts in the initial RAM disk only, and not the others.
    """
    blocked = node.get("blocked_modules") or {}
    found = [
        one
        for module in modules
        for one in blocked.get(module, ())
        if one["setting"].startswith(_IN_INITRAMFS) == early
    ]
    return [one for number, one in enumerate(found) if one not in found[:number]]


def stops_by_name(blocks: Sequence[Mapping[str, str]]) -> bool:
    """Return whether ``modprobe MODULE`` fails as well, which a blacklist alone does not do."""
    return any(one["setting"].startswith(_BY_NAME) for one in blocks)


def describe_blocks(blocks: Sequence[Mapping[str, str]]) -> str:
    """Return the settings as evidence: ``/etc/modprobe.d/a.conf: blacklist amdgpu``."""
    return "; ".join(f"{one['place']}: {one['setting']}" for one in blocks)


def unblock_step(blocks: Sequence[Mapping[str, str]]) -> str:
    """Return how to remove the settings, as a sentence in the imperative."""
    steps = []
    files = list(dict.fromkeys(one["place"] for one in blocks if one["place"] != COMMAND_LINE))
    if files:
        steps.append(
            f"take {_settings(blocks, files)} out of {' and '.join(files)} (a package or an "
            "operator may have written it), and rebuild the initial RAM disk"
        )
    if any(one["place"] == COMMAND_LINE for one in blocks):
        steps.append(
            f"take {_settings(blocks, [COMMAND_LINE])} off the kernel command line (GRUB: "
            "/etc/default/grub), and reboot"
        )
    text = "; ".join(steps)
    return f"{text[:1].upper()}{text[1:]}."


def _settings(blocks: Sequence[Mapping[str, str]], places: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(one["setting"] for one in blocks if one["place"] in places))
