# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of distributions, and the marked place of a template."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.distributions import (
    DISTRIBUTIONS,
    PLAIN,
    auto_handler_program,
    expand_variables,
    find_distribution,
    find_unread_template,
    makes_handler,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.template_block import (
    BASE,
    BEGIN,
    END,
    check_managed_block,
    has_base_template,
    managed_block,
    with_managed_block,
    without_managed_block,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError

LINES = st.lists(st.sampled_from(["{{ if .A }}", "a = 1", "", "# c", "[t]", "{{ end }}"]))
BLOCKS = st.lists(st.sampled_from(['[a."b.c"]', "x = 1", "# d", ""]), min_size=1)


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@given(LINES, BLOCKS, LINES, BLOCKS)
def test_only_what_is_between_the_lines_changes(above, block, below, other):
    template = text([*above, BEGIN, *block, END, *below])
    check_managed_block("t", template)
    assert managed_block(template) == text(block)
    assert with_managed_block("t", template, text(block) or None) in (template, None)
    changed = with_managed_block("t", template, "k = 2\n" + text(other))
    assert changed == text([*above, BEGIN, "k = 2", *other, END, *below])
    assert without_managed_block(template) == text([*above, *below])


def test_template_is_begun_and_goes_again():
    begun = with_managed_block("t", None, "x = 1\n")
    assert begun == f"{BASE}\n{BEGIN}\nx = 1\n{END}\n"
    assert with_managed_block("t", begun, None) is None
    assert with_managed_block("t", begun, "") is None
    assert with_managed_block("t", begun + "# mine\n", None) == BASE + "\n# mine\n"


@pytest.mark.parametrize("places", [0, 2])
def test_one_place_it_has_to_be(places):
    with pytest.raises(KubegpuError, match="no place" if not places else "2 places"):
        check_managed_block("t", BASE + f"{BEGIN}\n{END}\n" * places)


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ("k3s version v1.31.5+k3s1 (56ec5dd4)\ngo version go1.22.10", True),
        ("k3s version v1.24.17+k3s1", True),
        ("k3s version v1.24.16+k3s1", False),
        ("rke2 version v1.28.1+rke2r1", True),
        ("rke2 version v1.28.0+rke2r1", False),
        ("rke2 version v1.22.17+rke2r1", False),
        ("k3s version v2.0.0+k3s1", True),
        ("", False),
    ],
)
def test_base_template(words, known):
    assert has_base_template(words) is known


def test_rke2_and_k3s_differ_by_their_folder_only():
    rke2, k3s = (item for item in DISTRIBUTIONS if item.name in ("rke2", "k3s"))
    assert rke2.config_path.replace("rke2", "k3s") == k3s.config_path
    assert rke2.socket == k3s.socket
    assert set(k3s.templates) == set(k3s.drop_ins) == {2, 3}


def test_whose_unit_holds_a_member_of_the_control_plane():
    held = {item.name: item.control_plane_units for item in (PLAIN, *DISTRIBUTIONS)}
    assert {name: units for name, units in held.items() if units} == {
        "rke2": ("rke2-server",),
        "k3s": ("k3s",),
        "k0s": ("k0scontroller",),
    }
    assert all(set(item.control_plane_units) < set(item.units) for item in DISTRIBUTIONS)


def test_a_distribution_before_the_plain_one():
    assert find_distribution(lambda _path: False) == (PLAIN, "")
    everything, sign = find_distribution(lambda _path: True)
    assert (everything.name, sign) == ("rke2", everything.markers[0])


def test_what_is_made_without_us():
    (k3s,) = (item for item in DISTRIBUTIONS if item.name == "k3s")
    package, operator = "/usr/bin/nvidia-container-runtime", "/usr/local/nvidia/toolkit/"
    assert auto_handler_program(k3s, "nvidia", lambda _path: False) == package
    assert auto_handler_program(k3s, "nvidia", lambda path: path.startswith(operator)) != package
    assert auto_handler_program(k3s, "gpu", lambda _path: True) is None
    assert auto_handler_program(PLAIN, "nvidia", lambda _path: True) is None
    assert makes_handler("rke2", "nvidia", package)
    assert not makes_handler("k0s", "nvidia", package)
    assert not makes_handler(None, "nvidia", package)


def test_variables():
    (microk8s,) = (item for item in DISTRIBUTIONS if item.name == "microk8s")
    words = 'a = "${RUNTIME}"\nb = "${RUNTIME_TYPE}"\nc = "${SNAP_DATA}/x ${OTHER}"\n'
    assert expand_variables(words, microk8s.variables) == (
        'a = "runc"\nb = "io.containerd.runc.v2"\nc = "/var/snap/microk8s/current/x ${OTHER}"\n'
    )


HANDLER = "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]\n"


@pytest.mark.parametrize(
    ("version", "text", "config", "handlers", "told"),
    [
        (2, HANDLER, 3, {"runc": {}}, True),
        (3, '  BinaryName = "/usr/bin/nvidia-container-runtime"\n', 2, {"runc": {}}, True),
        # It is the one that is rendered; the handler is there; it has none; nothing is known.
        (3, HANDLER, 3, {"runc": {}}, False),
        (2, HANDLER, 3, {"runc": {}, "nvidia": {}}, False),
        (2, f"# {HANDLER}", 3, {"runc": {}}, False),
        (2, HANDLER, 3, None, False),
        (2, HANDLER, None, {"runc": {}}, False),
    ],
)
def test_a_template_that_k3s_does_not_read(version, text, config, handlers, told):
    (k3s,) = (one for one in DISTRIBUTIONS if one.name == "k3s")
    path = k3s.templates[version]
    finding = find_unread_template(k3s, {path: text}.get, config, handlers)
    assert (finding is not None) == told
    if finding is not None:
        assert finding.code == "k3s_template_other_version" and path in finding.cause
        assert str(k3s.templates[config]) in finding.next_step


def test_a_containerd_without_templates_has_none_to_read():
    assert find_unread_template(PLAIN, {}.get, 2, {"runc": {}}) is None
