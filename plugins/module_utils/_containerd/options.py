# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of the module besides the request, and the defaults of each distribution. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable

from .distributions import DISTRIBUTIONS, PLAIN, Distribution, find_distribution
from .types import Request


@dataclass(frozen=True)
class Settings:
    """How the module works. Times are in seconds."""

    distribution: str = "auto"
    containerd_version: str | None = None
    containerd_path: str | None = None
    unit: str = PLAIN.units[0]
    socket: str = PLAIN.socket
    validate: bool = True
    restart: bool = False
    restart_timeout: int = PLAIN.restart_timeout
    lock_timeout: float = 180.0
    #: Whether check mode precedes an installation of the container toolkit.
    toolkit_expected: bool = False
    #: Fingerprint of the caller's options, stored on the node once they are met.
    fingerprint: str = ""
    distributions: tuple[Distribution, ...] = DISTRIBUTIONS


def chosen_distribution(settings: Settings, exists: Callable[[str], bool]) -> Distribution:
    """Return the distribution that the options name, or the one found on the node."""
    if settings.distribution == "auto":
        return find_distribution(exists, settings.distributions)[0]
    known = (PLAIN, *settings.distributions)
    return next(
        distribution for distribution in known if distribution.name == settings.distribution
    )


def with_distribution_defaults(
    distribution: Distribution, request: Request, settings: Settings, unit: Callable[[], str]
) -> tuple[Request, Settings]:
    """Replace the defaults of plain containerd by those of the distribution.

    :param unit: returns the unit of the distribution that this node uses.
    """
    if distribution is PLAIN:
        return request, settings
    if request.config_path == PLAIN.config_path:
        request = replace(request, config_path=distribution.config_path)
    if settings.unit == PLAIN.units[0]:
        settings = replace(settings, unit=unit())
    if settings.socket == PLAIN.socket:
        settings = replace(settings, socket=distribution.socket)
    if settings.restart_timeout == PLAIN.restart_timeout:
        settings = replace(settings, restart_timeout=distribution.restart_timeout)
    return request, settings
