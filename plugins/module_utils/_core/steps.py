# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A step of a plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Steps of the toolkit's plan that are shown without the part's name.
_SELF_EXPLANATORY = ("cdi", "containerd", "docker", "crio")


@dataclass(frozen=True)
class Step:
    """One change of a plan, and its reason."""

    step: str
    action: str
    detail: str
    reason: str


def sentence(step: Step) -> str:
    """Return the step and its reason as one line."""
    return f"{step.step}: {step.reason}."


def change_text(step: Mapping[str, str]) -> str:
    """Return a step as the tables show it. It has the keys of :class:`Step`, and ``part``."""
    part, name, action = step["part"], step["step"], step["action"]
    detail = step["detail"]
    if name == "repository":
        # The address is long, and is in the JSON file.
        detail = ""
    elif name == "files":
        detail = ", ".join(path.rpartition("/")[2] for path in detail.split(", "))
    alone = name in (part, action) or name in _SELF_EXPLANATORY
    subject = (part if name == action else name) if alone else f"{part} {name}"
    return f"{subject}: {action} {detail}".rstrip()
