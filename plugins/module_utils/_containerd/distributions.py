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

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Callable

from .._core.errors import KubegpuError


@dataclass(frozen=True)
class Distribution:
    """A distribution of containerd: where it keeps its things, and what it does by itself."""

    name: str
    # One of these says that the node has it.
    markers: tuple[str, ...]
    binaries: tuple[str, ...]
    config_path: str
    units: tuple[str, ...]
    socket: str
    crictl: str = "crictl"
    ctr: tuple[str, ...] = ("ctr",)
    # containerd's own process, where it comes and goes without its unit.
    pid_file: str | None = None
    # How config_path begins while the distribution writes it itself; None: it never does.
    generated: str | None = None
    # A file of our own that the generated one imports, and the template that it is rendered from,
    # by the generated file's config version.
    drop_ins: Mapping[int, str] = field(default_factory=dict)
    templates: Mapping[int, str] = field(default_factory=dict)
    # Imported by the generated file where the distribution merges drop-ins into it by itself.
    merged_into: str | None = None
    # Programs from which it makes a handler whenever it starts, by the handler's name.
    auto_handlers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # What it puts in for ${NAME} in config_path.
    variables: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    # Seconds that a restart of the unit may take, and CRI after it.
    restart_timeout: int = 60
    # Units whose restart takes a member of the control plane (API server, etcd) down with it.
    control_plane_units: tuple[str, ...] = ()


_RANCHER_SOCKET = "/run/k3s/containerd/containerd.sock"
_SNAP = "/var/snap/microk8s"
# config.go: the version of the built-in template follows from the name of the user's.
_RANCHER_TEMPLATES = {2: "config.toml", 3: "config-v3.toml"}
# runtimes.go: /usr/bin by name or as part of PATH; the other is the GPU operator's.
_RANCHER_HANDLERS = {
    "nvidia": (
        "/usr/local/nvidia/toolkit/nvidia-container-runtime",
        "/usr/bin/nvidia-container-runtime",
    )
}


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
        # The unit starts Kubernetes too, whose units themselves have no limit.
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
# The order is the precedence: these bring a containerd of their own, beside which a plain one
# serves Docker at most.
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
        # k0s starts containerd anew, without itself, when a drop-in changes.
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
        # run-containerd-with-args fills its variables in by sed, whenever the unit starts.
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
    """Return the flavour of the node, and the path that shows it; plain where none does."""
    for distribution in distributions:
        for path in distribution.markers:
            if exists(path):
                return distribution, path
    return PLAIN, ""


def unit_in_use(states: Mapping[str, bool]) -> str | None:
    """Return the unit that runs, else the first one.

    RKE2's archive brings the units of servers and of agents to every node.

    :param states: whether each unit that is there runs, in the order of the flavour.
    """
    running = [unit for unit, active in states.items() if active]
    return next(iter([*running, *states]), None)


def ctr_command(distribution: Distribution, exists: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the command that takes the arguments of ``ctr``."""
    program, *rest = distribution.ctr
    if program == distribution.name:
        program = next((path for path in distribution.programs if exists(path)), program)
    return (program, *rest)


def auto_handler_program(
    distribution: Distribution, name: str, exists: Callable[[str], bool]
) -> str | None:
    """Return the program of a handler that the distribution makes itself, None for any other."""
    candidates = distribution.auto_handlers.get(name, ())
    present = [path for path in candidates if exists(path)]
    return present[0] if present else (candidates[-1] if candidates else None)


def makes_handler(distribution: str | None, name: str, program: str) -> bool:
    """Return whether a distribution makes this handler of this program by itself."""
    return any(
        program in item.auto_handlers.get(name, ())
        for item in DISTRIBUTIONS
        if item.name == distribution
    )


# -- templates: never parsed, edited between two lines -----------------------------------------

BASE = '{{ template "base" . }}\n'
BEGIN = "# BEGIN kubegpu.nodes"
END = "# END kubegpu.nodes"
_MARKED = re.compile(rf"(?ms)^{re.escape(BEGIN)}[ \t]*\n(.*?)^{re.escape(END)}[ \t]*(?:\n|\Z)")
# k3s and RKE2 from these patch releases on have a template of the name "base" (docs of k3s,
# "Advanced options"); newer minor releases all have it.
_BASE_SINCE = {(1, 24): 17, (1, 25): 13, (1, 26): 8, (1, 27): 5, (1, 28): 1}


def managed_block(text: str | None) -> str | None:
    """Return what stands between our two lines, None where they are not there."""
    found = _MARKED.search(text or "")
    return None if found is None else found[1]


def check_managed_block(path: str, text: str) -> None:
    """Refuse a template that has no marked place, or several."""
    places = len(_MARKED.findall(text))
    if places == 1:
        return
    raise KubegpuError(
        f"{path} is a template of somebody else's, and has {places or 'no'} "
        f"{'places' if places else 'place'} for this module: a Go template is only edited "
        "between two lines of its own.",
        evidence=f"looked for the lines {BEGIN!r} and {END!r}",
        next_step="Put these two lines at its end, one below the other, and run again.",
    )


def without_managed_block(text: str) -> str:
    """Return a rendered configuration without the marked place."""
    return _MARKED.sub("", text)


def with_managed_block(path: str, text: str | None, block: str | None) -> str | None:
    """Return the template with ``block`` between our lines; without them where it is None."""
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
            # As we begin one: it says the same as no template at all.
            return None
        if block is None:
            return rest
    lines = f"{BEGIN}\n{block}{END}\n"
    return _MARKED.sub(lambda _found: lines, text)


def has_base_template(version: str) -> bool:
    """Return whether the k3s or RKE2 of these ``--version`` words has the template ``base``."""
    match = re.search(r"v(\d+)\.(\d+)\.(\d+)", version)
    if match is None:
        return False
    major, minor, patch = (int(part) for part in match.groups())
    if (major, minor) > max(_BASE_SINCE):
        return True
    return patch >= _BASE_SINCE.get((major, minor), patch + 1)


def expand_variables(text: str, variables: Mapping[str, str]) -> str:
    """Return the text as the distribution renders it."""
    for name, value in variables.items():
        text = text.replace(f"${{{name}}}", value)
    return text
