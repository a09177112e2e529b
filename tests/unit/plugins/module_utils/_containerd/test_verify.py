# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What containerd would make of edited files, beside what was meant."""

from __future__ import annotations

import tomllib

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.config import Effective
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.plan import plan_present
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import Request, State
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.verify import verify
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.config_file import ConfigFile

TYPELESS = (
    'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]\n'
    "SystemdCgroup = true\n"
)


def plan(text, effective=None, **options):
    node = State(
        version=(1, 7),
        files=(ConfigFile(Request.config_path, text, tomllib.loads(text)),),
        drop_in=ConfigFile(Request.drop_in_path, None, {}),
        effective=effective,
    )
    return plan_present(Request(**options), node, tomllib.loads)


def dump(runtimes, default="runc", **more):
    return Effective(
        {
            "version": 2,
            "plugins": {
                "io.containerd.grpc.v1.cri": {
                    "containerd": {"default_runtime_name": default, "runtimes": runtimes},
                    **more,
                }
            },
        }
    )


GOOD = {
    "runtime_type": "io.containerd.runc.v2",
    "options": {"BinaryName": "/usr/bin/nvidia-container-runtime"},
}
PLAIN = {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": False}}


def test_verify_accepts_what_was_meant():
    planned = plan("version = 2\n")
    verify(Request(), planned, dump({"runc": PLAIN}), dump({"runc": PLAIN, "nvidia": GOOD}))


def test_verify_lets_the_type_of_runc_come_and_go():
    """Filled in on request; taken back by its lines, where somebody edited the file since."""
    data = tomllib.loads(TYPELESS)
    data["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]["runc"][
        "runtime_type"
    ] = ""
    typeless = {"runtime_type": "", "options": {"SystemdCgroup": True}}
    handler_of_it = {**GOOD, "options": {**GOOD["options"], "SystemdCgroup": True}}
    typed = {**typeless, "runtime_type": "io.containerd.runc.v2"}
    planned = plan(TYPELESS, Effective(data), complete_runc=True)
    bare, full = dump({"runc": typeless}), dump({"runc": typed, "nvidia": handler_of_it})
    verify(Request(complete_runc=True), planned, bare, full)
    verify(Request(state="absent"), planned, full, bare)
    with pytest.raises(KubegpuError) as caught:
        half = dump({"runc": typeless, "nvidia": handler_of_it})
        verify(Request(complete_runc=True), planned, bare, half)
    assert "runc would have no runtime_type" in caught.value.evidence


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (dump({"runc": PLAIN}), "would not be there"),
        (dump({"runc": {**PLAIN, "snapshotter": "x"}, "nvidia": GOOD}), "runtimes runc would"),
        (dump({"runc": PLAIN, "nvidia": GOOD, "third": GOOD}), "third would change"),
        (dump({"nvidia": GOOD}), "runc would change"),
        (dump({"runc": PLAIN, "nvidia": {**GOOD, "options": {}}}), "BinaryName"),
        (
            dump(
                {"runc": PLAIN, "nvidia": {**GOOD, "options": {**GOOD["options"], "binaryName": 1}}}
            ),
            "BinaryName",
        ),
        (dump({"runc": PLAIN, "nvidia": {**GOOD, "runtime_type": ""}}), "no runtime_type"),
        (
            dump(
                {
                    "runc": PLAIN,
                    "nvidia": {**GOOD, "options": {**GOOD["options"], "SystemdCgroup": True}},
                }
            ),
            "SystemdCgroup",
        ),
        (dump({"runc": PLAIN, "nvidia": GOOD}, default="gone"), "would not exist"),
        (dump({"runc": PLAIN, "nvidia": GOOD}, default="nvidia"), "other than the handler"),
        (dump({"runc": PLAIN, "nvidia": GOOD}, enable_selinux=True), "other than the handler"),
    ],
)
def test_verify_refuses_anything_else(after, words):
    planned = plan("version = 2\n")
    with pytest.raises(KubegpuError, match="would not mean what it should") as caught:
        verify(Request(), planned, dump({"runc": PLAIN}), after)
    assert words in caught.value.evidence
