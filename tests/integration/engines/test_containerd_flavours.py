# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""k3s, RKE2, k0s and MicroK8s: what the real containerd of their generation makes of our files.

The distributions' part (templates rendered, drop-ins merged) is a stand-in, see flavour_node.py.
Input 16 of facts/runtimes.md is among them. Config version 4 has no containerd here that reads it:
its edit is judged as version 3 by containerd 2.1, whose CRI tables are the same.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from tests.integration.engines.containerd_inputs.judge import (
    Place,
    binary,
    default,
    judge,
    runtimes,
)
from tests.unit.fixtures.flavour_node import NODES, PROGRAM, DistributionNode

RANCHER = [node for node in NODES if node[0] in ("k3s", "rke2")]
IMPORTED = [node for node in NODES if node[2] == "2.1"]
# One of each way: template, file that containerd imports, file that is merged, template in TOML.
WAYS = [("k3s", 2, "1.7"), ("k0s", 3, "2.1"), ("k0s", 2, "1.7"), ("microk8s", 2, "1.7")]


def kinds(nodes):
    return pytest.mark.parametrize("kind", nodes, ids=["-".join(map(str, node)) for node in nodes])


@pytest.fixture
def node(kind, tmp_path):
    made = DistributionNode(tmp_path, *kind, binary=binary(kind[2]))
    # The binary's own words count, not the version that the kind names.
    (tmp_path / "scratch").mkdir(exist_ok=True)
    return made


@pytest.mark.full(
    "rke2-2-1.7", "rke2-3-2.1", "microk8s-2-1.6", why="files as k3s has them, or as with 1.7"
)
@kinds(NODES)
def test_handler_is_there_and_nothing_else_changed(node):
    before, files = node.judged(), node.files()
    answer = node.ok(name="gpu")
    assert answer.changed
    node.started(found=False)
    after = node.judged()
    judge(before, after, name="gpu", path=PROGRAM)
    # What was said before the distribution started is what the real one sees after it.
    assert set(answer.handlers) == set(runtimes(after))
    again = node.ok(name="gpu")
    assert (again.changed, again.handlers) == (False, answer.handlers)
    assert node.ok(name="gpu", state="absent").changed
    node.started(found=False)
    assert node.judged() == before
    assert node.files() == files


@pytest.mark.full(why="test_handler_is_there_... with a second one, as input 15 of containerd has")
@kinds(WAYS)
def test_two_handlers_beside_each_other(node):
    before = node.judged()
    node.run(name="gpu")
    node.run(name="more", options={"NoNewKeyring": True})
    assert not node.run(name="gpu").changed
    node.started(found=False)
    found = runtimes(node.judged())
    assert {"gpu", "more"} <= set(found)
    assert found["more"]["options"]["NoNewKeyring"] is True
    assert not found["gpu"]["options"].get("NoNewKeyring")
    node.run(name="gpu", state="absent")
    node.run(name="more", state="absent")
    node.started(found=False)
    assert node.judged() == before


@pytest.mark.full("rke2-2-1.7", "rke2-3-2.1", why="files as k3s has them")
@kinds(RANCHER)
def test_what_k3s_makes_itself_is_foreseen(node):
    before = node.judged()
    answer = node.run()
    assert not answer.changed
    node.started()
    after = node.judged()
    judge(before, after)
    assert node.run().handlers == answer.handlers
    assert answer.handlers["nvidia"]["path"] == PROGRAM


@kinds(IMPORTED)
def test_default_by_drop_in(node):
    node.started()
    before = node.judged()
    answer = node.run(set_default=True)
    assert (answer.changed, answer.default_runtime) == (True, "nvidia")
    assert default(node.judged()) == "nvidia"
    node.run(state="absent")
    assert default(node.judged()) == "runc"
    assert node.judged() == before


@kinds(IMPORTED)
def test_another_binary_over_the_one_that_is_made(node):
    node.started()
    node.run(runtime_path="/opt/toolkit/nvidia-container-runtime")
    found = runtimes(node.judged())["nvidia"]
    assert found["options"]["BinaryName"] == "/opt/toolkit/nvidia-container-runtime"
    assert not node.run(runtime_path="/opt/toolkit/nvidia-container-runtime").changed


@kinds([("k0s", 2, "1.7"), ("microk8s", 2, "1.7")])
def test_default_of_those_that_have_no_own_option_for_it(node):
    answer = node.run(set_default=True)
    assert answer.default_runtime == "nvidia"
    node.started()
    assert default(node.judged()) == "nvidia"
    node.run()
    node.started()
    assert default(node.judged()) == "runc"


@kinds([("k3s", 2, "1.7")])
def test_a_table_that_k3s_writes_too_would_stop_containerd(node):
    """Why it is refused: the real one takes no table twice."""
    with pytest.raises(KubegpuError, match="writes that table itself"):
        node.run(name="gpu", set_default=True)
    table = '[plugins."io.containerd.grpc.v1.cri".containerd]\n'
    node.put(node.config, node.config.read_text() + table + 'default_runtime_name = "gpu"\n')
    with pytest.raises(AssertionError):
        node.judged()


@kinds([("k3s", 2, "1.7")])
def test_a_drop_in_would_wipe_the_settings_of_k3s_on_1_7(node):
    """Why k3s with containerd 1.7 gets a template, though it may import a folder."""
    folder = node.drop_in.parent
    node.put(node.config, f'imports = ["{folder}/*.toml"]\n' + node.config.read_text())
    answer = node.run(name="gpu")
    assert answer.changed
    assert node.template.exists()
    assert not node.drop_in.exists()


@pytest.mark.parametrize("layout", ["in_place", "drop_in"])
def test_config_version_4_is_edited_as_version_3_is(tmp_path, layout):
    text = (
        "version = 3\n"
        "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]\n"
        '  runtime_type = "io.containerd.runc.v2"\n'
        "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\n"
        "  SystemdCgroup = true\n"
    )
    place = Place(tmp_path / "3", "2.1")
    four = Place(tmp_path / "4", "2.1")
    for made, content in ((place, text), (four, text.replace("version = 3", "version = 4"))):
        made.imports.mkdir(parents=True)
        made.config.write_text(content)
    before = place.dump()
    place.run(layout=layout)
    judge(before, place.dump())
    four.run(layout=layout, validate=False, containerd_version="2.3.0")
    written = list(place.folder.joinpath("etc").rglob("*.toml"))
    assert len(written) == (2 if layout == "drop_in" else 1)
    for path in written:
        other = four.folder / path.relative_to(place.folder)
        same = other.read_text().replace("version = 4", "version = 3")
        assert same.replace(str(four.folder), str(place.folder)) == path.read_text()
