# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Distributions that write containerd's configuration themselves, without asking a containerd."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.template_block import (
    BEGIN,
    END,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from tests.unit.fixtures.flavour_node import CRI, NODES, PROGRAM, DistributionNode

MARKS = f"{BEGIN}\n{END}\n"
BASE = '{{ template "base" . }}\n'
RANCHER = [node for node in NODES if node[0] in ("k3s", "rke2")]


def on(nodes):
    """Parametrize by distributions; RKE2 has the files of k3s in another folder."""
    alike = pytest.mark.full(why="RKE2 as k3s, containerd 1.6 as 1.7")
    kinds = [
        pytest.param(
            node,
            id="-".join(map(str, node)),
            marks=[alike] if node[0] == "rke2" or node[2] == "1.6" else [],
        )
        for node in nodes
    ]
    return pytest.mark.parametrize("kind", kinds)


each = on(NODES)
on_rancher = on(RANCHER)
on_old_k3s = pytest.mark.parametrize("kind", [("k3s", 2, "1.7")])
on_new_k3s = pytest.mark.parametrize("kind", [("k3s", 3, "2.1")])


@pytest.fixture
def node(kind, tmp_path):
    made = DistributionNode(tmp_path, *kind)
    yield made
    made.stop_unit()


def handler(text, version, name):
    return tomllib.loads(text)["plugins"][CRI[version]]["containerd"]["runtimes"][name]


@each
def test_a_handler_of_another_name_present_again_absent(node):
    """k3s makes no other one than nvidia, so that this one is ours on all of them."""
    before = node.files()
    first = node.ok(name="gpu")
    assert first.changed
    written = {path for path, state in node.files().items() if before.get(path) != state}
    own = node.config if node.distribution.name == "microk8s" else node.drop_in
    if node.template.exists():
        own = node.template
    assert written == {str(own.relative_to(node.folder))}
    assert not node.ok(name="gpu").changed
    node.started()
    again = node.ok(name="gpu")
    assert (again.changed, again.diff) == (False, [])
    assert node.ok(name="gpu", state="absent").changed
    assert not node.ok(name="gpu", state="absent").changed
    node.started(found=False)
    assert node.files() == before


# k0s 1.34 names no runc: what is built in is known to the real containerd only (engines stage).
WITH_RUNC = [node for node in NODES if node[:2] != ("k0s", 3)]


@on(WITH_RUNC)
def test_options_and_a_second_handler(node):
    node.ok(name="gpu")
    node.ok(name="more", options={"NoNewKeyring": True})
    assert node.ok(name="gpu", options={"NoPivotRoot": True}).changed
    node.started()
    assert not node.ok(name="more", options={"NoNewKeyring": True}).changed
    node.ok(name="gpu", state="absent")
    node.started()
    assert not node.ok(name="more", options={"NoNewKeyring": True}).changed
    node.ok(name="more", state="absent")
    node.started(found=False)
    assert b"NoNewKeyring" not in b"".join(content for content, _mode in node.files().values())


@on_rancher
def test_what_k3s_does_by_itself_is_not_done_twice(node):
    """Before its next start and after it; the real unit's restart is in the reason."""
    before = node.files()
    first = node.ok()
    assert not first.changed
    assert node.files() == before
    node.started()
    assert not node.ok().changed
    assert not node.ok(state="absent").changed


@on_rancher
def test_the_handler_that_k3s_will_make_is_not_written_in_advance(kind, tmp_path):
    node = DistributionNode(tmp_path, *kind, runtime=False)
    before = node.files()
    answer = node.ok()
    assert not answer.changed
    assert any("does not exist yet" in warning for warning in answer.warnings)
    assert node.files() == before


@on_new_k3s
def test_another_binary_than_the_one_k3s_finds_is_written_whole(node):
    node.started()
    assert node.ok(runtime_path="/opt/toolkit/nvidia-container-runtime").changed
    found = handler(node.drop_in.read_text(), 3, "nvidia")
    assert found == {
        "runtime_type": "io.containerd.runc.v2",
        "options": {
            "BinaryName": "/opt/toolkit/nvidia-container-runtime",
            "SystemdCgroup": True,
        },
    }
    assert tomllib.loads(node.drop_in.read_text())["version"] == 3


@on_old_k3s
def test_a_template_cannot_change_what_k3s_makes(node):
    before = node.files()
    for options in ({"runtime_path": "/opt/x"}, {"options": {"NoNewKeyring": True}}):
        with pytest.raises(KubegpuError, match="cannot change it"):
            node.run(**options)
    with pytest.raises(KubegpuError, match="writes that table itself"):
        node.run(name="gpu", set_default=True)
    assert node.files() == before


@on_new_k3s
def test_default_goes_into_the_drop_in(node):
    node.started()
    node.ok(set_default=True)
    text = node.drop_in.read_text()
    data = tomllib.loads(text)["plugins"][CRI[3]]["containerd"]
    assert data == {"default_runtime_name": "nvidia"}
    node.ok(state="absent")
    assert not node.drop_in.exists()


@on_old_k3s
def test_template_is_begun_with_the_base(node):
    node.ok(name="gpu")
    text = node.template.read_text()
    assert text.startswith(f"{BASE}\n{BEGIN}\n[plugins.")
    assert text.endswith(f"\n{END}\n")
    part = text.partition(BEGIN)[2]
    assert handler(part, 2, "gpu")["options"] == {"BinaryName": PROGRAM, "SystemdCgroup": True}


@on_old_k3s
def test_our_handler_in_a_file_that_lost_its_comments_is_no_second_one(node):
    """Newer releases merge base and template as data, so that the marks do not come through."""
    node.ok(name="gpu")
    node.started(found=False)
    rendered = node.config.read_text()
    node.put(node.config, rendered.replace(f"{BEGIN}\n", "").replace(f"{END}\n", ""))
    assert not node.ok(name="gpu").changed
    assert node.ok(name="gpu", options={"NoNewKeyring": True}).changed
    assert handler(node.template.read_text().partition(BEGIN)[2], 2, "gpu")["options"] == {
        "BinaryName": PROGRAM,
        "SystemdCgroup": True,
        "NoNewKeyring": True,
    }
    node.ok(name="gpu", state="absent")
    assert not node.template.exists()


@on_old_k3s
def test_template_of_somebody_else_is_edited_at_its_marked_place_only(node):
    own = "{{/* ours */}}\n" + BASE + '[debug]\n  level = "{{ .Level }}"\n\n'
    node.put(node.template, own)
    with pytest.raises(KubegpuError, match="template that this module did not create") as refused:
        node.run(name="gpu")
    assert BEGIN in str(refused.value) and END in str(refused.value)
    assert node.template.read_text() == own
    node.put(node.template, own + MARKS)
    node.ok(name="gpu")
    text = node.template.read_text()
    assert text.startswith(own + BEGIN + "\n[plugins.")
    # Edited since: only what is between the lines goes, the edit stays.
    node.put(node.template, text + "# later\n")
    node.ok(name="gpu", state="absent")
    assert node.template.read_text().replace(MARKS, "") == own + "# later\n"


@on_old_k3s
def test_secrets_of_a_template_are_not_shown(node):
    node.put(node.template, f'{BASE}  password = "hidden"\n  auth = "{{{{ .X }}}}"\n{MARKS}')
    (diff,) = node.ok(name="gpu").diff
    assert "hidden" not in diff["after"]
    assert "gpu" in diff["after"]


@on_old_k3s
@pytest.mark.parametrize(
    ("version", "known"),
    [("v1.27.4+k3s1", False), ("v1.27.5+k3s1", True), ("v1.23.9+k3s1", False), ("", False)],
)
def test_template_needs_a_release_that_has_the_base(node, version, known):
    node.k3s_version = version
    if known:
        assert node.run(name="gpu").changed
        return
    with pytest.raises(KubegpuError, match="has no template 'base'"):
        node.run(name="gpu")


@on_old_k3s
def test_containerd_2_0_is_not_trusted_to_merge(node):
    node.version, node.containerd = 3, "2.0"
    node.started(found=False)
    folder = node.config.parent
    node.run(name="gpu")
    assert (folder / "config-v3.toml.tmpl").exists()
    assert not (folder / "config-v3.toml.d").exists()


@each
def test_before_the_first_start_there_is_nothing_to_go_by(node):
    node.put(Path(node.distribution.binaries[0]), "")
    node.config.unlink()
    if node.distribution.generated is None:
        return
    with pytest.raises(KubegpuError, match=f"{node.distribution.name} has not written"):
        node.run()
    assert not node.ok(state="absent").changed


@each
def test_in_place_is_refused_where_the_file_is_not_ours_to_edit(node):
    if node.distribution.generated is None:
        assert node.run(layout="in_place").changed
        return
    with pytest.raises(KubegpuError, match="is regenerated"):
        node.run(layout="in_place", name="gpu")


@pytest.mark.parametrize("kind", [("k0s", 2, "1.7"), ("k0s", 3, "2.1")])
def test_k0s_configuration_that_was_taken_over_is_edited_in_place(node):
    text = f'version = {node.version}\n[plugins."{CRI[node.version]}".containerd.runtimes.runc]\n'
    text += '  runtime_type = "io.containerd.runc.v2"\n'
    node.put(node.config, text)
    assert node.ok().changed
    assert "nvidia" in node.config.read_text()
    assert not node.drop_in.exists()
    node.ok(state="absent")
    assert node.config.read_text() == text


@pytest.mark.parametrize("kind", [("microk8s", 2, "1.7")])
def test_microk8s_template_keeps_its_variables(node):
    before = node.config.read_text()
    answer = node.ok()
    assert not answer.warnings
    text = node.config.read_text()
    for line in before.splitlines():
        assert line in text.splitlines()
    assert node.ok(set_default=True).changed
    assert 'default_runtime_name = "nvidia"' in node.config.read_text()
    node.ok()
    assert 'default_runtime_name = "${RUNTIME}"' in node.config.read_text()


@on_old_k3s
def test_nothing_of_a_go_template_is_written_into_one(node):
    with pytest.raises(KubegpuError, match="Go template"):
        node.run(name="gpu", options={"Root": "{{ x }}"})


# -- the right unit ------------------------------------------------------------------------------


@each
def test_the_distributions_own_unit_is_restarted_and_then_left_alone(node):
    unit = node.distribution.units[-1]
    node.start_unit(unit)
    first = node.ok(name="gpu")
    assert first.restart_required
    done = node.run(name="gpu", restart=True)
    assert (done.restarted, done.restart_required) == (True, False)
    assert ("systemctl", "restart", unit) in node.asked
    node.asked.clear()
    again = node.ok(name="gpu", restart=True)
    assert (again.changed, again.restarted, again.restart_required) == (False, False, False)
    assert ("systemctl", "restart", unit) not in node.asked
    assert node.run(name="gpu", state="absent", restart=True).restarted
    assert not node.run(name="gpu", state="absent").restart_required


@each
def test_the_unit_that_runs_is_meant_where_all_are_installed(node):
    """RKE2's archive brings the units of servers and of agents to every node."""
    node.idle_units = node.distribution.units
    unit = node.distribution.units[-1]
    node.start_unit(unit)
    assert node.run(name="gpu", restart=True).restarted
    assert ("systemctl", "restart", unit) in node.asked


@on_rancher
def test_a_restart_that_starts_kubernetes_has_time(kind, tmp_path):
    node = DistributionNode(tmp_path, *kind)
    limits = []

    def command(argv, timeout=60, environment=None):
        if argv[:2] == ["systemctl", "restart"]:
            limits.append(timeout)
        return DistributionNode.command(node, argv)

    node.command = command
    try:
        node.start_unit(node.distribution.units[0])
        assert node.run(name="gpu", restart=True).restarted
    finally:
        node.stop_unit()
    assert limits == [600]


@on_rancher
def test_k3s_is_restarted_so_that_it_finds_the_runtime(kind, tmp_path):
    node = DistributionNode(tmp_path, *kind, runtime=False)
    unit = node.distribution.units[0]
    try:
        node.start_unit(unit)
        assert not node.ok().restart_required
        # The toolkit comes: what runs has been started without it.
        node.runtime = True
        before = node.files()
        answer = node.ok()
        assert (answer.changed, answer.restart_required) == (False, True)
        assert "makes the handler nvidia itself" in answer.restart_reason
        assert node.files() == before
        done = node.run(restart=True)
        assert (done.changed, done.restarted) == (True, True)
        assert "nvidia" in node.config.read_text()
        assert not node.ok().restart_required
    finally:
        node.stop_unit()


@pytest.mark.parametrize("kind", [("k0s", 2, "1.7"), ("k0s", 3, "2.1")])
def test_k0s_that_started_containerd_anew_by_itself_needs_no_restart(node):
    node.start_unit("k0sworker")
    assert node.ok(name="gpu").restart_required
    # k0s watches the folder: its containerd is another process then, its unit is not.
    node.start_unit("k0sworker")
    assert not node.ok(name="gpu").restart_required
