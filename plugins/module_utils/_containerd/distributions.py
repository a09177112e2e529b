# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes distributions that bring their own containerd, and their paths (data). Pure.

Sources, read on 2026-11-21: k3s-io/k3s pkg/agent/containerd/{config,runtimes}.go and
pkg/agent/templates/templates.go (RKE2 runs the same code), k0sproject/k0s
pkg/component/worker/containerd/{component,configurer}.go, canonical/microk8s
microk8s-resources/{default-args,wrappers}, shared facts of containerd's versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Callable

from .._core.finding import Finding
from .._nvidia.toolkit_paths import RUNTIME_PATH


@dataclass(frozen=True)
class Distribution:
    """A distribution of containerd: its paths, its units, and what it configures itself."""

    name: str
    # The distribution is present if one of these paths exists.
    markers: tuple[str, ...]
    binaries: tuple[str, ...]
    config_path: str
    units: tuple[str, ...]
    socket: str
    crictl: str = "crictl"
    ctr: tuple[str, ...] = ("ctr",)
    # File with containerd's process ID, where containerd restarts independently of its unit.
    pid_file: str | None = None
    # Pattern at the start of a generated config_path; None: the distribution never generates it.
    generated: str | None = None
    # By config version of the generated file: our drop-in file that it imports, and the template
    # that it is rendered from.
    drop_ins: Mapping[int, str] = field(default_factory=dict)
    templates: Mapping[int, str] = field(default_factory=dict)
    # The file into which the distribution merges drop-in files; the generated file imports it.
    merged_into: str | None = None
    # Handlers that the distribution adds at startup if it finds one of these programs.
    auto_handlers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Values that it substitutes for ${NAME} in config_path.
    variables: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    # Time limit in seconds for a restart of the unit, and for CRI after it.
    restart_timeout: int = 60
    # Units whose restart also restarts a control plane member (API server, etcd).
    control_plane_units: tuple[str, ...] = ()


_RANCHER_SOCKET = "/run/k3s/containerd/containerd.sock"
_SNAP = "/var/snap/microk8s"
# config.go: the name of the user's template selects the config version.
_RANCHER_TEMPLATES = {2: "config.toml", 3: "config-v3.toml"}
# runtimes.go: /usr/bin directly or through PATH; the other path belongs to the GPU operator.
_RANCHER_HANDLERS = {"nvidia": ("/usr/local/nvidia/toolkit/nvidia-container-runtime", RUNTIME_PATH)}


def _rancher(
    name: str, tools: str, server: str, agent: str, programs: tuple[str, ...]
) -> Distribution:
    folder = f"/var/lib/rancher/{name}/agent/etc/containerd"
    return Distribution(
        name,
        (folder,),
        (f"{tools}/containerd",),
        f"{folder}/config.toml",
        (server, agent),
        _RANCHER_SOCKET,
        crictl=f"{tools}/crictl",
        ctr=(f"{tools}/ctr",),
        generated="",
        drop_ins={
            version: f"{folder}/{stem}.d/99-nvidia.toml"
            for version, stem in _RANCHER_TEMPLATES.items()
        },
        templates={
            version: f"{folder}/{stem}.tmpl" for version, stem in _RANCHER_TEMPLATES.items()
        },
        auto_handlers=_RANCHER_HANDLERS,
        programs=programs,
        # The unit starts Kubernetes too and sets no time limit itself.
        restart_timeout=600,
        control_plane_units=(server,),
    )


PLAIN = Distribution(
    "containerd",
    (),
    ("containerd", "/usr/bin/containerd", "/usr/local/bin/containerd", "/opt/bin/containerd"),
    "/etc/containerd/config.toml",
    ("containerd",),
    "/run/containerd/containerd.sock",
)
# In order of precedence. Each brings its own containerd; a plain one on the same node serves
# Docker at most.
DISTRIBUTIONS = (
    _rancher(
        "rke2",
        "/var/lib/rancher/rke2/bin",
        "rke2-server",
        "rke2-agent",
        ("/usr/local/bin/rke2", "/usr/bin/rke2", "/opt/rke2/bin/rke2"),
    ),
    _rancher(
        "k3s",
        "/var/lib/rancher/k3s/data/current/bin",
        "k3s",
        "k3s-agent",
        ("/usr/local/bin/k3s", "/usr/bin/k3s", "/opt/bin/k3s"),
    ),
    Distribution(
        "k0s",
        ("/var/lib/k0s/bin/containerd", "/etc/k0s/containerd.toml"),
        ("/var/lib/k0s/bin/containerd",),
        "/etc/k0s/containerd.toml",
        ("k0sworker", "k0scontroller"),
        "/run/k0s/containerd.sock",
        ctr=("k0s", "ctr"),
        programs=("/usr/local/bin/k0s", "/usr/bin/k0s"),
        # k0s restarts containerd, but not its own unit, when a drop-in file changes.
        pid_file="/run/k0s/containerd.pid",
        generated=r"\s*# k0s_managed=true",
        drop_ins=dict.fromkeys((2, 3), "/etc/k0s/containerd.d/99-nvidia.toml"),
        merged_into="/run/k0s/containerd-cri.toml",
        control_plane_units=("k0scontroller",),
    ),
    Distribution(
        "microk8s",
        (f"{_SNAP}/current/args",),
        ("/snap/microk8s/current/bin/containerd",),
        # run-containerd-with-args substitutes the variables with sed at every start of the unit.
        f"{_SNAP}/current/args/containerd-template.toml",
        ("snap.microk8s.daemon-containerd",),
        f"{_SNAP}/common/run/containerd.sock",
        ctr=("/snap/microk8s/current/bin/ctr",),
        variables={
            "SNAP": "/snap/microk8s/current",
            "SNAP_DATA": f"{_SNAP}/current",
            "SNAP_COMMON": f"{_SNAP}/common",
            "SNAPSHOTTER": "overlayfs",
            "RUNTIME": "runc",
            "RUNTIME_TYPE": "io.containerd.runc.v2",
        },
    ),
)


def find_distribution(
    exists: Callable[[str], bool], distributions: Iterable[Distribution] = DISTRIBUTIONS
) -> tuple[Distribution, str]:
    """Return the node's distribution (else plain containerd) and the path that identifies it."""
    for distribution in distributions:
        for path in distribution.markers:
            if exists(path):
                return distribution, path
    return PLAIN, ""


def unit_in_use(states: Mapping[str, bool]) -> str | None:
    """Return the running unit, else the first one, else None.

    The RKE2 archive installs the units of servers and of agents on every node.

    :param states: whether each installed unit runs, in the order of the distribution.
    """
    running = [unit for unit, active in states.items() if active]
    return next(iter([*running, *states]), None)


def ctr_command(distribution: Distribution, exists: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the command line of ``ctr`` for this distribution, without arguments."""
    program, *rest = distribution.ctr
    if program == distribution.name:
        program = next((path for path in distribution.programs if exists(path)), program)
    return (program, *rest)


def auto_handler_program(
    distribution: Distribution, name: str, exists: Callable[[str], bool]
) -> str | None:
    """Return the program of a handler that the distribution adds itself, None for others."""
    candidates = distribution.auto_handlers.get(name, ())
    present = [path for path in candidates if exists(path)]
    return present[0] if present else (candidates[-1] if candidates else None)


def makes_handler(distribution: str | None, name: str, program: str) -> bool:
    """Return whether the distribution adds this handler with this program itself."""
    return any(
        program in item.auto_handlers.get(name, ())
        for item in DISTRIBUTIONS
        if item.name == distribution
    )


# -- templates: not parsed; only the block between two marker lines is edited --------------------


_HANDLER_LINE = re.compile(
    r"^[^#\n]*(?:nvidia-container-runtime|runtimes\.[\"']?nvidia[\"']?\])", re.M
)


def find_unread_template(
    distribution: Distribution,
    read: Callable[[str], str | None],
    config: int | None,
    handlers: Mapping[str, Any] | None,
) -> Finding | None:
    """Return the finding for a template with NVIDIA's handler that is not rendered.

    Its name has the version of the configuration, and the distribution renders the one of the
    version that its containerd reads.

    :param read: returns the text of a file; None if it does not exist.
    :param config: the version of the generated configuration.
    :param handlers: those of containerd; None if they are unknown.
    """
    if config is None or handlers is None or "nvidia" in handlers:
        return None
    wanted = distribution.templates.get(config)
    for version, path in distribution.templates.items():
        if version == config or not _HANDLER_LINE.search(read(path) or ""):
            continue
        return Finding(
            "k3s_template_other_version",
            f"The template {path} has the handler nvidia, and {distribution.name} does not read "
            f"it: its containerd has a configuration of version {config}, not {version}.",
            f"version = {config} in {distribution.config_path}; the handlers of containerd are "
            f"{', '.join(sorted(handlers)) or 'none'}",
            f"Take the handler out of {path} and run kubegpu.nodes.site (tag runtime), which "
            f"configures this version; or move it to {wanted}, with the tables of version "
            f"{config}.",
        )
    return None


def expand_variables(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with the distribution's variables substituted."""
    for name, value in variables.items():
        text = text.replace(f"${{{name}}}", value)
    return text
