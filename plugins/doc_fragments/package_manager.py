# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option of the modules that use the node's package manager."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended as C(kubegpu.nodes.package_manager)."""

    DOCUMENTATION = r"""
options:
  lock_timeout:
    description:
      - Time in seconds to wait for another run of the package manager.
      - Ansible's modules for zypper and dnf 5 do not wait. With zypper, this module waits before
        the change; if another run begins in the seconds between, this run fails, and the next one
        continues.
    type: int
    default: 600
  http_proxy:
    description:
      - Proxy for plain HTTP, C(http://[USER:PASSWORD@]HOST:PORT), for this module and the programs
        that it starts, unless they have their own. It appears on no command line, as a variable of
        the task's C(environment) would.
    type: str
  https_proxy:
    description:
      - Proxy for HTTPS.
    type: str
  no_proxy:
    description:
      - Hosts that are reached without proxy, separated by commas.
    type: str
  proxies:
    description:
      - Mappings with the keys O(http_proxy), O(https_proxy) and O(no_proxy), instead of these
        options. Of a key that several mappings have, the last value counts; an empty one is not
        set.
    type: list
    elements: dict
"""
