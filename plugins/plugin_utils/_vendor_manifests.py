# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of AMD's and Intel's device plugin, as their filters return them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.vendor_manifests import (
    manifests,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.vendor_options import (
    read_request,
)


def vendor_manifests(vendor: str, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects.

    :raises AnsibleFilterError: an option is invalid.
    """
    try:
        return manifests(read_request(vendor, options))
    except KubegpuError as error:
        raise AnsibleFilterError(f"{vendor}_device_plugin_manifests: {error}") from error
