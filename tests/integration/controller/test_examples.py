# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The examples without nodes: syntax, variables that exist, and plans of machines that are trees.

On nodes they are run in tests/integration/fleet/test_examples.py.
"""

from __future__ import annotations

import os
import re

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.openpgp import read_keys
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables_data import (
    PLAYBOOK_VARIABLES,
)
from tests.integration import ansible_process
from tests.integration.plans import machines, playbook
from tests.tools.environments import REPOSITORY, collections
from tests.unit.fixtures.keys import ED25519
from tests.unit.fixtures.machines import MACHINES

EXAMPLES = REPOSITORY / "playbooks" / "examples"
NAMES = sorted(path.name for path in (EXAMPLES / "inventories").iterdir())
# kubespray's, as its docs/CRI/containerd.md and role kubernetes/client have them.
OF_OTHERS = {
    "kubespray": {
        "containerd_additional_runtimes", "containerd_default_runtime", "kubeconfig_localhost"
    }
}  # fmt: skip
# Where each inventory's own hosts come from, and how they are reached.
CONNECTION = re.compile("ansible_[a-z_]+")


def specifications():
    """The options of all roles and the variables of the playbooks, by name."""
    found = dict(PLAYBOOK_VARIABLES)
    for path in sorted(REPOSITORY.glob("roles/*/meta/argument_specs.yml")):
        for entry in yaml.safe_load(path.read_text())["argument_specs"].values():
            found.update(entry.get("options", {}))
    return found


def variables(name, inventories=EXAMPLES / "inventories"):
    """The variables of an example's inventory: (name, value)."""
    found = []
    for path in sorted((inventories / name).rglob("group_vars/**/*.yml")):
        found += yaml.safe_load(path.read_text()).items()
    groups = [yaml.safe_load((inventories / name / "hosts.yml").read_text())]
    while groups:
        for group in groups.pop().values():
            found += (group or {}).get("vars", {}).items()
            groups += [one for one in [(group or {}).get("children")] if one]
    return found


def wrong(name, found):
    """What an example's variables have wrong, one line each."""
    options, lines = specifications(), []
    known = OF_OTHERS.get(name, ())
    text = "".join(str(value) for _key, value in found)
    text += (EXAMPLES / f"{name}.yml").read_text() if name in NAMES else ""
    for key, value in found:
        own = key.startswith("site_") and key in text
        if key in options:
            keys = options[key].get("options")
            if keys and isinstance(value, dict):
                lines += [f"{key}.{part}: no such key" for part in value.keys() - keys]
            if "{{" in str(value):
                continue
            parts = ("type", "elements", "choices", "options")
            one = {part: options[key][part] for part in parts if part in options[key]}
            answer = ArgumentSpecValidator({key: one}).validate({key: value})
            lines += [f"{key}: {message}" for message in answer.error_messages]
        elif key not in known and not own and not CONNECTION.fullmatch(key):
            lines.append(f"{key}: nobody has such a variable")
    return lines


def run(*argv, **environment):
    place = collections()
    return ansible_process.run(
        [str(playbook.BIN / argv[0]), *argv[1:]],
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(place), **environment},
        cwd=place,
        timeout=120,
    )


def test_each_example_has_an_inventory_and_its_place_in_the_documentation():
    assert len(NAMES) == 8
    playbooks = sorted(path.stem for path in EXAMPLES.glob("*.yml"))
    assert playbooks == [*NAMES, "workload"]
    rows = re.findall(r"(?m)^\| \[`(\w+)`\]", (REPOSITORY / "docs" / "examples.md").read_text())
    assert sorted(rows) == playbooks


def test_a_workload_is_checked_before_the_cluster_gets_it(tmp_path):
    own = EXAMPLES / "files" / "workload.yml"
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(own.read_text().replace("limits:", "requests:"))
    # Nothing answers there: the task that speaks to the cluster fails.
    nobody = {"K8S_AUTH_HOST": "https://127.0.0.1:9", "K8S_AUTH_API_KEY": "none"}
    results = [
        run("ansible-playbook", "kubegpu.nodes.examples.workload", *more, **nobody)
        for more in ([], ["-e", f"workload_file={wrong}"])
    ]
    assert all(result.returncode == 2 for result in results)
    assert "TASK [Create the workload]" in results[0].stdout, results[0].stdout
    assert "TASK [Create the workload]" not in results[1].stdout
    message = results[1].stdout
    assert "in requests alone, which the API server refuses" in message, message
    assert "Next step: Write limits: {nvidia.com/gpu: 1}" in message


@pytest.mark.parametrize("name", NAMES)
def test_found_by_name_parsed_and_for_hosts_of_its_inventory(name):
    """A group that the inventory does not have would be a run that does nothing."""
    # --list-hosts reads plays and roles as --syntax-check does, and goes one step further.
    inventory = str(EXAMPLES / "inventories" / name)
    listed = run(
        "ansible-playbook", "--list-hosts", "-i", inventory, f"kubegpu.nodes.examples.{name}"
    )
    assert listed.returncode == 0, listed.stderr
    # Groups of GPUs come into being in a run only.
    assert listed.stderr == "", listed.stderr
    _before, _title, first = listed.stdout.partition("play #1")
    assert "gpu1.example.com" in first.partition("play #2")[0], listed.stdout


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_exists_and_may_have_its_value(name):
    found = variables(name)
    assert found
    assert wrong(name, found) == []


def test_a_variable_that_nobody_has_is_found(tmp_path):
    folder = tmp_path / "made" / "group_vars"
    folder.mkdir(parents=True)
    (tmp_path / "made" / "hosts.yml").write_text("some: {hosts: {one: null}, vars: {site_x: 1}}\n")
    (folder / "some.yml").write_text(
        "nvidia_driver_brunch: auto\nnvidia_driver_source: torrent\nnvidia_driver_hold: [1]\n"
        "nvidia_driver_branch: '580'\nkubegpu_become: true\nkubegpu_proxies: x\n"
        "nvidia_driver_repository: {uri: x, url: '{{ x }}'}\nkubegpu_proxy: {no_proxy: x}\n"
    )
    lines = wrong("made", variables("made", tmp_path))
    assert [line.partition(":")[0] for line in lines] == [
        "nvidia_driver_brunch", "nvidia_driver_source", "nvidia_driver_hold", "kubegpu_proxies",
        "nvidia_driver_repository.uri", "site_x",
    ]  # fmt: skip


def planned(tmp_path, name, group, own, **wishes):
    """Plan machines that are trees with an example's variables."""
    inventory = machines.write(tmp_path, own)
    made = tmp_path / "groups.yml"
    made.write_text(yaml.safe_dump({group: {"hosts": dict.fromkeys(own)}}))
    answer = playbook.run(
        inventory, "kubegpu.nodes.plan", "-i", str(EXAMPLES / "inventories" / name),
        "-i", str(made), "--limit", ",".join(own), kubegpu_kube={}, **wishes,
    )  # fmt: skip
    assert answer.status == 0, answer.screen
    return answer.rows


def test_air_gapped_drivers_and_cuda_come_from_the_mirror(tmp_path):
    own = {"p4": MACHINES["p4"], "h100": MACHINES["h100x8"]}
    # The example has no key: the plan refuses nodes whose key is not on the controller.
    key = tmp_path / "key.asc"
    key.write_bytes(ED25519)
    rows = planned(
        tmp_path, "air_gapped", "gpu_site", own, site_toolkit_key=str(key),
        site_fingerprints=list(read_keys(ED25519).fingerprints),
        nvidia_driver_source="nvidia", cuda_toolkit_versions=["12.9"],
    )  # fmt: skip
    for row in rows.values():
        repository = row["driver"]["repository"]
        for address in (repository["url"], repository["key_url"]):
            assert address.startswith("https://mirror.example.com/cuda/repos/"), address
            assert "{" not in address
        toolkit = row["toolkit"]["repository"]
        assert toolkit["url"] == "https://mirror.example.com/libnvidia-container/stable/deb"
        assert row["cuda"]["action"] == "install"


@pytest.mark.full(why="test_s24_... of the plans with an example's variables")
def test_s24_cloud_image_with_a_driver_is_left_alone(tmp_path):
    image = machines.by_runfile(MACHINES["a100x8"], "580.95.05", "open")
    own = {"image": image, "bare": MACHINES["a100x8"]}
    rows = planned(tmp_path, "cloud_image", "cloud_gpus", own)
    assert (rows["image"]["driver"]["action"], rows["image"]["driver"]["change"]) == ("none", False)
    assert rows["bare"]["driver"]["action"] == "install"
