# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths of the NVIDIA Container Toolkit: those of its packages, and of its CDI specifications."""

from __future__ import annotations

RUNTIME_PATH = "/usr/bin/nvidia-container-runtime"
CONFIG_PATH = "/etc/nvidia-container-runtime/config.toml"
CDI_PATH = "/etc/cdi/nvidia.yaml"
CDI_SERVICE_PATH = "/var/run/cdi/nvidia.yaml"
#: The toolkit's service that makes the specification; since 1.20.1 a rule of udev
#: (99-nvidia-cdi-refresh.rules) starts it whenever the module nvidia is loaded.
CDI_REFRESH_UNIT = "nvidia-cdi-refresh.service"
#: The configuration of the GPU operator's toolkit, in its default folder.
OPERATOR_CONFIG = "/usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml"
