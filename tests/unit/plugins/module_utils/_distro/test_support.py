# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.support import unsupported


@pytest.mark.parametrize(
    ("identity", "version", "old"),
    [
        ("rocky", "8.10", True),
        ("rocky", "9.6", False),
        # These take NVIDIA's folder for RHEL 8, whatever their own number is.
        ("alinux", "3", True),
        ("tencentos", "3.1", True),
        ("ctyunos", "2.0.1", True),
        ("ctyunos", "3", True),
        ("openeuler", "20.03", True),
        ("uos", "20", True),
        ("opencloudos", "8.8", True),
        ("anolis", "8.9", True),
        ("openeuler", "22.03", False),
        ("anolis", "23.1", False),
        ("amzn", "2023", False),
        ("kylin", "V10", False),
        # No row is for it.
        ("standinlinux", "8.4", True),
        ("standinlinux", "9.4", False),
    ],
)
def test_a_dnf_as_old_as_that_of_rhel_8_needs_a_new_ansible(identity, version, old):
    system = {"id": identity, "version": version, "family": "rhel", "package_manager": "dnf"}
    said = unsupported(system, "2.20.1")
    assert bool(said) == old
    assert ("Next step: run with ansible-core 2.21 or later" in str(said)) == old
    assert unsupported(system, "2.21.0") is unsupported(system, "") is None
    assert unsupported({**system, "package_manager": "dnf5"}, "2.20.1") is None
