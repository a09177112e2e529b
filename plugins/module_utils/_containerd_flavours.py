# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose containerd a node runs, and where that one is configured: data. Pure.

Sources, read on 2026-11-21: k3s-io/k3s pkg/agent/containerd/{config,runtimes}.go and
pkg/agent/templates/templates.go (RKE2 runs the same code), k0sproject/k0s
pkg/component/worker/containerd/{component,configurer}.go, canonical/microk8s
microk8s-resources/{default-args,wrappers}, shared facts of containerd's versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Flavour:
    """A distribution of containerd: where it keeps its things."""

    name: str
    # One of these says that the node has it.
    markers: tuple[str, ...]
    binaries: tuple[str, ...]
    config_path: str
    units: tuple[str, ...]
    socket: str


_RANCHER = "/var/lib/rancher/{0}/agent/etc/containerd"
_RANCHER_SOCKET = "/run/k3s/containerd/containerd.sock"
_SNAP = "/var/snap/microk8s"

PLAIN = Flavour(
    "containerd",
    (),
    ("containerd", "/usr/bin/containerd", "/usr/local/bin/containerd", "/opt/bin/containerd"),
    "/etc/containerd/config.toml",
    ("containerd",),
    "/run/containerd/containerd.sock",
)
# The order is the precedence: these bring a containerd of their own, beside which a plain one
# serves Docker at most.
FLAVOURS = (
    Flavour(
        "rke2",
        (_RANCHER.format("rke2"),),
        ("/var/lib/rancher/rke2/bin/containerd",),
        _RANCHER.format("rke2") + "/config.toml",
        ("rke2-server", "rke2-agent"),
        _RANCHER_SOCKET,
    ),
    Flavour(
        "k3s",
        (_RANCHER.format("k3s"),),
        ("/var/lib/rancher/k3s/data/current/bin/containerd",),
        _RANCHER.format("k3s") + "/config.toml",
        ("k3s", "k3s-agent"),
        _RANCHER_SOCKET,
    ),
    Flavour(
        "k0s",
        ("/var/lib/k0s/bin/containerd", "/etc/k0s/containerd.toml"),
        ("/var/lib/k0s/bin/containerd",),
        "/etc/k0s/containerd.toml",
        ("k0sworker", "k0scontroller"),
        "/run/k0s/containerd.sock",
    ),
    Flavour(
        "microk8s",
        (f"{_SNAP}/current/args",),
        ("/snap/microk8s/current/bin/containerd",),
        f"{_SNAP}/current/args/containerd-template.toml",
        ("snap.microk8s.daemon-containerd",),
        f"{_SNAP}/common/run/containerd.sock",
    ),
)
_BY_NAME = {flavour.name: flavour for flavour in (PLAIN, *FLAVOURS)}


def find_flavour(
    exists: Callable[[str], bool], flavours: Iterable[Flavour] = FLAVOURS
) -> tuple[Flavour, str]:
    """Return the flavour of the node, and the path that shows it; plain where none does."""
    for flavour in flavours:
        for path in flavour.markers:
            if exists(path):
                return flavour, path
    return PLAIN, ""


def named(name: str) -> Flavour:
    """Return the flavour of that name."""
    return _BY_NAME[name]
