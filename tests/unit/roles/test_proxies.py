# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No role and no playbook puts a proxy's address, which can hold a password, on a command line."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
FILES = sorted([*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/**/*.yml")])
#: Roles whose modules download, with the task that does.
DOWNLOADS = {
    "nvidia_driver": {"nvidia_driver", "package_repository"},
    "cuda_toolkit": {"cuda_toolkit", "package_repository"},
    "nvidia_container_toolkit": {"package_repository"},
    "amd_driver": {"package_repository"},
    "amd_container_toolkit": {"package_repository"},
    "gpu_monitoring": {"package_repository"},
    # It saves packages before the change and after it.
    "gpu_upgrade": {"package_set"},
}


def mappings(value):
    if isinstance(value, list):
        for one in value:
            yield from mappings(one)
    elif isinstance(value, dict):
        yield value
        for one in value.values():
            yield from mappings(one)


def test_no_task_and_no_play_has_an_environment():
    """Ansible puts it in front of the command, for every user of the node and sudo's log."""
    assert len(FILES) > 50
    found = [
        f"{path.relative_to(ROOT)}: {one.get('name')}"
        for path in FILES
        if not {"inventories", "files"} & {*path.parts}
        for one in mappings(yaml.safe_load(path.read_text(encoding="utf-8")))
        if "environment" in one
    ]
    assert found == []


def test_the_modules_that_download_have_them_as_options():
    for role, wanted in DOWNLOADS.items():
        seen = set()
        for path in (ROOT / "roles" / role / "tasks").glob("*.yml"):
            for task in mappings(yaml.safe_load(path.read_text(encoding="utf-8"))):
                for name in wanted:
                    arguments = task.get(f"kubegpu.nodes.{name}") or {}
                    if "proxies" in arguments or arguments.get("state") == "saved":
                        assert arguments["proxies"] == ["{{ kubegpu_proxy | default({}, true) }}"]
                        seen.add(name)
        assert seen == wanted, role
