# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names, versions and units of the exporters of a host. Sources: docs/data.md. Pure."""

from __future__ import annotations

AUTO = "auto"
TEXTFILE = "textfile"
PACKAGES = "packages"
CONTAINER = "container"
METHODS = (AUTO, TEXTFILE, PACKAGES, CONTAINER)

# DCGM and its exporter are released in pairs. The pair of the newest image that NVIDIA's GPU
# operator names (assets of v26.7.1, read 2026-11-28).
VERSION = "4.6.1-4.8.4"
IMAGE = "nvcr.io/nvidia/k8s/dcgm-exporter"
IMAGE_SUFFIX = "-distroless"

# DCGM/cmake/packaging.cmake (72fa3fe, 2026-09) and NVIDIA's CUDA repositories: Debian's packages
# of DCGM have the epoch 1, those of the exporter none.
CORE_PACKAGE = "datacenter-gpu-manager-4-core"
# The modules of the profiling metrics (DCGM_FI_PROF_*).
PROPRIETARY_PACKAGE = "datacenter-gpu-manager-4-proprietary"
EXPORTER_PACKAGE = "datacenter-gpu-manager-exporter"
PACKAGE_SET = "gpu-monitoring"
PACKAGE_PREFIX = "datacenter-gpu-manager"
# DCGM 3, which conflicts with DCGM 4.
OLD_PACKAGE = "datacenter-gpu-manager"

DCGM_UNIT = "nvidia-dcgm"
EXPORTER_UNIT = "nvidia-dcgm-exporter"
CONTAINER_UNIT = "kubegpu-dcgm-exporter"
TEXTFILE_UNIT = "kubegpu-metrics"
#: Units that the facts read.
UNITS = (DCGM_UNIT, EXPORTER_UNIT, CONTAINER_UNIT)
# Exporters of others: the unit of NVIDIA's own instructions, of prometheus.prometheus' role
# nvidia_gpu_exporter, of AMD's and Intel's packages.
FOREIGN_UNITS = (
    "dcgm-exporter",
    "nvidia_gpu_exporter",
    "nvidia-gpu-exporter",
    "amd-metrics-exporter",
    "xpumd",
)

# Where node_exporter reads text files: Debian's and Ubuntu's package, the role node_exporter of
# prometheus.prometheus, Fedora's and EPEL's package.
TEXTFILE_DIRECTORIES = (
    "/var/lib/prometheus/node-exporter",
    "/var/lib/node_exporter",
    "/var/lib/node_exporter/textfile_collector",
)
OUTPUT = "kubegpu.prom"
# Gone with the boot, as the kernel's log is.
STATE_FOLDER = "kubegpu-metrics"
STATE_PATH = f"/run/{STATE_FOLDER}/state.json"

PROGRAM_PATH = "/usr/local/lib/kubegpu/metrics.py"
SERVICE_PATH = f"/etc/systemd/system/{TEXTFILE_UNIT}.service"
TIMER_PATH = f"/etc/systemd/system/{TEXTFILE_UNIT}.timer"
COUNTERS_PATH = "/etc/kubegpu/dcgm-counters.csv"
DROP_IN_PATH = f"/etc/systemd/system/{EXPORTER_UNIT}.service.d/kubegpu.conf"
CONTAINER_PATH = f"/etc/systemd/system/{CONTAINER_UNIT}.service"
#: All files that a method can have.
PATHS = (
    PROGRAM_PATH,
    SERVICE_PATH,
    TIMER_PATH,
    COUNTERS_PATH,
    DROP_IN_PATH,
    CONTAINER_PATH,
)
