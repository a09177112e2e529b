# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names and limits of containerd's configuration: data. Pure."""

from __future__ import annotations

from collections.abc import Mapping

Path = tuple[str, ...]
Version = tuple[int, int]

CRI_GRPC = "io.containerd.grpc.v1.cri"
CRI_RUNTIME = "io.containerd.cri.v1.runtime"
CRI_IMAGES = "io.containerd.cri.v1.images"
CRI_NAMES = frozenset({"cri", CRI_GRPC, CRI_RUNTIME, CRI_IMAGES})
# Where each config version that this release knows keeps the runtimes of CRI.
# (4 moved the settings of the daemon's own sockets into plugins; CRI's are where 3 has them.)
CRI_TABLE: Mapping[int, str] = {1: "cri", 2: CRI_GRPC, 3: CRI_RUNTIME, 4: CRI_RUNTIME}
NEWEST_CONFIG = max(CRI_TABLE)
# The newest config version that a containerd loads, from this release of it on.
LOADS: tuple[tuple[Version, int], ...] = (((2, 3), 4), ((2, 0), 3), ((0, 0), 2))
# From here on an imported file is merged key by key; before, it replaces a plugin's whole table.
# (1.6, 1.7 and 2.1 were measured; 2.0 was not, so that it is treated like 1.7.)
DEEP_MERGE = (2, 1)
# From about here /etc/containerd/conf.d is imported although no file says so.
BUILTIN_IMPORTS = (2, 2)
# Keys below the CRI table.
RUNTIMES = ("containerd", "runtimes")
DEFAULT = ("containerd", "default_runtime_name")
CDI = ("enable_cdi",)

RUNC_SHIM = "io.containerd.runc.v2"
# Runtimes whose options are those of runc, so that a handler may take them over.
RUNC_SHIMS = frozenset({RUNC_SHIM, "io.containerd.runc.v1"})
# Options of these shims, whose names are read without regard to case.
BINARY = "BinaryName"
# Every runtime of a node has to agree with the kubelet on this one.
CGROUP = "systemdcgroup"
# How the names of NVIDIA's runtimes begin.
NVIDIA_RUNTIME = "nvidia-container-runtime"
