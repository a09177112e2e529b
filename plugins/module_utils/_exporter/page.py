# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which GPUs a page of metrics shows. Pure."""

from __future__ import annotations

import re

# With MIG, each instance has the UUID of its GPU.
_DCGM = re.compile(r'^DCGM_[A-Z0-9_]{1,80}\{[^\n]{0,2000}?\bUUID="([^"\n]{1,100})"', re.MULTILINE)
_TEXTFILE = re.compile(
    r'^kubegpu_gpu_info\{[^\n]{0,2000}?\bpci_bus_id="([0-9a-f:.]{12})"', re.MULTILINE
)
_POD = re.compile(
    r'^DCGM_[A-Z0-9_]{1,80}\{[^\n]{0,2000}?\b(?:exported_)?pod(?:_name)?="[^"\n]', re.MULTILINE
)


def has_pod(text: str) -> bool:
    """Return whether a sample on the page of DCGM's exporter names the pod that uses its GPU."""
    return _POD.search(text) is not None


def dcgm_gpus(text: str) -> set[str]:
    """Return the UUIDs of the GPUs on the page of DCGM's exporter."""
    return set(_DCGM.findall(text))


def textfile_gpus(text: str) -> set[str]:
    """Return the PCI addresses of the GPUs that their drivers show to the program."""
    return set(_TEXTFILE.findall(text))
