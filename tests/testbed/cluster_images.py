# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Container images of the cluster's nodes, made here: stand-ins with a small shell.

Each is a tar file that ``ctr images import`` takes. Names and tags say that they are stand-ins.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.testbed import cluster_binaries
from tests.testbed.fleet import Node
from tests.testbed.payload import tar

BUSYBOX = "localhost/testbed/busybox:1"
# The tag is that of the real one.
DEVICE_PLUGIN_NAME = "localhost/testbed/k8s-device-plugin-standin"
DEVICE_PLUGIN = f"{DEVICE_PLUGIN_NAME}:v0.20.1"
# The tag is that of the role's default version.
DCGM_EXPORTER_NAME = "localhost/testbed/dcgm-exporter-standin"
DCGM_EXPORTER = f"{DCGM_EXPORTER_NAME}:4.6.1-4.8.4-distroless"
AMD_PLUGIN_NAME = "localhost/testbed/amd-k8s-device-plugin-standin"
INTEL_PLUGIN_NAME = "localhost/testbed/intel-gpu-plugin-standin"
SAMPLE = "localhost/testbed/vectoradd:cuda11.7.1-standin"
# More than the driver of the A10 node can do, and what that of the L4 node can.
SAMPLE_NEW = "localhost/testbed/vectoradd:cuda12.5.0-standin"
# More than any driver here can do.
SAMPLE_TOO_NEW = "localhost/testbed/vectoradd:cuda13.3.0-standin"
_APPLETS = (
    "sh", "env", "sleep", "cat", "echo", "ls", "mv", "true", "false", "grep", "ps", "kill", "test",
    "id", "mkdir", "rm", "ln", "wget", "nc", "ip",
)  # fmt: skip
_PLUGIN_PROGRAMS = (
    "nvidia-device-plugin", "config-manager", "mps-control-daemon", "gpu-feature-discovery"
)  # fmt: skip


@dataclass(frozen=True)
class Image:
    """One image: a base of busybox, and names under which the stand-in program is found."""

    name: str
    # Of /usr/bin, or with their folder.
    programs: tuple[str, ...]
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    # The vendor whose nodes have it; None: all nodes.
    vendor: int | None = None

    @property
    def file(self) -> str:
        return f"{self.name.rsplit('/', 1)[1].replace(':', '-')}.tar"

    def serves(self, node: Node) -> bool:
        """Whether the node has it."""
        return self.vendor in {None, *(gpu.vendor for gpu in node.gpus)}


def _sample(name: str, cuda: str) -> Image:
    # As the real ones have it: any of these may be met.
    require = f"cuda>={cuda} brand=tesla,driver>=470,driver<471"
    return Image(
        name,
        ("vectorAdd",),
        command=("/cuda-samples/vectorAdd",),
        environment={
            "NVIDIA_VISIBLE_DEVICES": "all",
            "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
            "NVIDIA_REQUIRE_CUDA": require,
            "CUDA_VERSION": f"{cuda}.0",
        },
    )


IMAGES = (
    Image(
        DEVICE_PLUGIN,
        _PLUGIN_PROGRAMS,
        entrypoint=("nvidia-device-plugin",),
        environment={
            "NVIDIA_VISIBLE_DEVICES": "all",
            "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
            "NVIDIA_DISABLE_REQUIRE": "true",
        },
    ),
    Image(
        DCGM_EXPORTER,
        ("dcgm-exporter",),
        entrypoint=("dcgm-exporter",),
        environment={"NVIDIA_DISABLE_REQUIRE": "true"},
    ),
    # The real one is started in its folder, by a relative path.
    Image(f"{AMD_PLUGIN_NAME}:1.31.0.10", ("root/k8s-device-plugin",), vendor=0x1002),
    Image(
        f"{INTEL_PLUGIN_NAME}:0.36.0",
        ("usr/local/bin/intel_gpu_device_plugin",),
        entrypoint=("/usr/local/bin/intel_gpu_device_plugin",),
        vendor=0x8086,
    ),
    _sample(SAMPLE, "11.7"),
    _sample(SAMPLE_NEW, "12.5"),
    _sample(SAMPLE_TOO_NEW, "13.3"),
)


def archives(nodes: Sequence[Node]) -> dict[Image, bytes]:
    """The images that these nodes have. The program is in each of them: they are small enough."""
    return {image: archive(image) for image in IMAGES if any(map(image.serves, nodes))}


def archive(image: Image) -> bytes:
    """The image in the form that ``docker save`` writes."""
    layer = _layer(image)
    path = [f"PATH={':'.join(('/usr/bin', '/bin'))}"]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Env": path + [f"{name}={value}" for name, value in image.environment.items()],
            "Entrypoint": list(image.entrypoint) or None,
            "Cmd": list(image.command) or None,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    text = json.dumps(config).encode()
    name = f"{hashlib.sha256(text).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": [image.name], "Layers": ["layer.tar"]}]
    contents = {"manifest.json": json.dumps(manifest).encode(), name: text, "layer.tar": layer}
    return tar({path: (content, 0o644) for path, content in contents.items()}, {})


def _layer(image: Image) -> bytes:
    busybox = (cluster_binaries.programs() / "busybox").read_bytes()
    standin = cluster_binaries.standins().read_bytes()
    contents = {"bin/busybox": (busybox, 0o755), "usr/bin/kubegpu-standin": (standin, 0o755)}
    links = {f"bin/{applet}": "busybox" for applet in _APPLETS}
    for program in image.programs:
        links[program if "/" in program else f"usr/bin/{program}"] = "/usr/bin/kubegpu-standin"
    if "vectorAdd" in image.programs:
        links["cuda-samples/vectorAdd"] = "/usr/bin/kubegpu-standin"
        links["cuda-samples/sample"] = "vectorAdd"
    empty = ("etc", "proc", "sys", "dev", "tmp", "var/lib", "config")
    return tar(contents, links, empty)
