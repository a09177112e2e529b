# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names and version limits of containerd's configuration (data)."""

from __future__ import annotations

from collections.abc import Mapping

Path = tuple[str, ...]
Version = tuple[int, int]

CRI_GRPC = "io.containerd.grpc.v1.cri"
CRI_RUNTIME = "io.containerd.cri.v1.runtime"
CRI_IMAGES = "io.containerd.cri.v1.images"
CRI_NAMES = frozenset({"cri", CRI_GRPC, CRI_RUNTIME, CRI_IMAGES})
# The table with the CRI settings, by config version. (Version 4 moved the settings of the daemon's
# own sockets into plugins; the CRI tables are those of version 3.)
CRI_TABLE: Mapping[int, str] = {1: "cri", 2: CRI_GRPC, 3: CRI_RUNTIME, 4: CRI_RUNTIME}
NEWEST_CONFIG = max(CRI_TABLE)
# The newest config version that containerd loads, from this release on.
LOADS: tuple[tuple[Version, int], ...] = (((2, 3), 4), ((2, 0), 3), ((0, 0), 2))
# From this release on, an imported file is merged key by key. Earlier releases replace the whole
# table of a plugin. (1.6, 1.7 and 2.1 were measured; 2.0 was not, so it is treated like 1.7.)
DEEP_MERGE = (2, 1)
# From about this release on, /etc/containerd/conf.d is imported by default.
BUILTIN_IMPORTS = (2, 2)
# Paths relative to the CRI table.
RUNTIMES = ("containerd", "runtimes")
DEFAULT = ("containerd", "default_runtime_name")
CDI = ("enable_cdi",)

RUNC_SHIM = "io.containerd.runc.v2"
# Shims with the options of runc: a handler can inherit from a runtime of these types.
RUNC_SHIMS = frozenset({RUNC_SHIM, "io.containerd.runc.v1"})
# Options of these shims; containerd ignores the case of their names.
BINARY = "BinaryName"
# Must match the cgroup driver of the kubelet in every runtime.
CGROUP = "systemdcgroup"
# Prefix of the names of NVIDIA's runtime programs.
NVIDIA_RUNTIME = "nvidia-container-runtime"
