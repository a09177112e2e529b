# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of ``gpu_test_pods``, read into a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.checks import check_at_least, check_expression
from .._kube.image import check_reference
from .types import Request, Sample

#: Of NVIDIA's pods. Its CUDA is old on purpose, so that old drivers run it too.
IMAGE = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda11.7.1-ubuntu20.04"
TOLERATIONS = ({"operator": "Exists", "effect": "NoSchedule"},)
#: The option of each vendor, and how the names of its resources begin.
SAMPLES = {"amd": "amd.com/", "intel": "gpu.intel.com/"}
# A container has the device nodes of the GPU that it was given, and no others.
_LIST = "for node in {nodes}; do test -c $node || exit 1; echo given $node; done"
_NODES = {"amd": "/dev/kfd /dev/dri/renderD*", "intel": "/dev/dri/renderD*"}


def sample_argument(option: str) -> dict[str, Any]:
    """Return the argument spec of a vendor's option."""
    command = ["sh", "-c", _LIST.format(nodes=_NODES[option])]
    options = {
        "image": {"type": "str", "default": "docker.io/library/busybox:1.37.0"},
        "command": {"type": "list", "elements": "str", "default": command},
        "args": {"type": "list", "elements": "str", "default": []},
        "expect": {"type": "str", "default": r"^given /dev/dri/renderD\d+"},
    }
    return {"type": "dict", "apply_defaults": True, "options": options}


def read_options(params: Mapping[str, Any]) -> Request:
    """Return the request.

    :raises InputError: an option has a wrong value.
    """
    check_expression("expect", params["expect"])
    for name in ("count", "timeout"):
        check_at_least(name, params[name])
    check_reference("image", params["image"])
    samples = {}
    for option, prefix in SAMPLES.items():
        sample = params[option]
        check_reference(f"{option}.image", sample["image"])
        check_expression(f"{option}.expect", sample["expect"])
        samples[prefix] = Sample(
            sample["image"], tuple(sample["command"]), tuple(sample["args"]), sample["expect"]
        )
    return Request(
        image=params["image"],
        expect=params["expect"],
        command=tuple(params["command"]),
        args=tuple(params["args"]),
        env=params["env"],
        namespace=params["namespace"],
        runtime_class=params["runtime_class"],
        tolerations=tuple(params["tolerations"]),
        pull_policy=params["pull_policy"],
        pull_secrets=tuple(params["pull_secrets"]),
        priority_class=params["priority_class"],
        run_as_user=params["run_as_user"],
        timeout=params["timeout"],
        busy_fails=params["busy"] == "fail",
        samples=samples,
    )
