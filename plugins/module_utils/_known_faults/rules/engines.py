# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of container engines about images, and of engines that do not answer. Data."""

from __future__ import annotations

from ..types import Rule

_READ_REPORTS = "2026-11-28"

# Docker pulls what it does not have, and kubelet tries again.
_PULLED = r"Downloaded newer image|Successfully pulled image"

ENGINES = (
    Rule(
        "image_missing",
        r"Unable to find image \W{0,8}(?P<one>[\w./:@-]+)\W{0,8} locally"
        r"|No such image: (?P<two>[\w./:@-]+)"
        r"|image \W{0,8}(?P<three>[\w./:@-]+)\W{1,8}not found"
        r"|Container image \W{0,8}(?P<four>[\w./:@-]+)\W{0,8} is not present with pull policy"
        r"|ErrImageNeverPull",
        "docker, ctr, kubelet",
        "The image {one}{two}{three}{four} is not on this node.",
        "Bring it there (an archive, or a registry that the node reaches), or allow the pull.",
        "Unable to find image 'nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0' locally",
        "docker's own words",
        over=_PULLED,
    ),
    Rule(
        "driver_image_missing",
        r"(?P<image>[\w./:-]{1,160}/driver:\d{3}[\w.-]{1,100})\W{1,4}(?:not found"
        r"|reading manifest [^\n]{1,200}manifest unknown)",
        "kubelet, for the driver pod of NVIDIA's GPU operator",
        "The driver image {image} does not exist: driver images are published for some "
        "distributions, releases and kernels only, and not for this one.",
        "Bring the driver the way of the system (system extensions on Talos and Flatcar, Google's "
        "installer on Container-Optimized OS, packages elsewhere), and set driver.enabled=false of "
        "the GPU operator. Otherwise build the image from NVIDIA's gpu-driver-container, or set "
        "driver.version to one that the registry has for this system.",
        'Failed to pull image "nvcr.io/nvidia/driver:570.148.08-cos121": rpc error: code = '
        "NotFound desc = nvcr.io/nvidia/driver:570.148.08-cos121: not found",
        "github.com/NVIDIA/gpu-operator/issues/647 and 1623, gpu-driver-container/issues/301",
        "2026-11-28",
        covers=("image_missing", "image_pull_failed"),
    ),
    Rule(
        "image_pull_failed",
        r"ErrImagePull|ImagePullBackOff|failed to resolve reference \W{0,16}(?P<image>[\w./:@-]+)"
        r"|pull access denied for (?P<other>[\w./:@-]+)|failed to pull and unpack image",
        "kubelet, docker, ctr",
        "The image {image}{other} cannot be pulled: the registry does not answer, does not have "
        "it, or wants a login.",
        "Name an image that the node can pull (a mirror, a pull secret), or bring it there before.",
        'Failed to pull image "nvcr.io/nvidia/k8s-device-plugin:v0.20.0": failed to resolve '
        'reference "nvcr.io/nvidia/k8s-device-plugin:v0.20.0": dial tcp: i/o timeout',
        "kubelet's own words",
        over=_PULLED,
        covers=("image_missing",),
    ),
    Rule(
        "wrong_architecture",
        r"exec format error|no match for platform in manifest",
        "container start",
        "The image was built for another kind of processor than the node's.",
        "Use an image for the node's architecture (gpu_node.os.arch).",
        "exec /bin/sh: exec format error",
        "runc's own words",
    ),
    Rule(
        "cri_missing",
        r"no corresponding runtime configured in \W{0,8}(?:containerd\.)?runtimes\W{0,8} for "
        r"\W{0,8}containerd\W{0,8} \W{0,8}default_runtime_name\s?=\s?\W{0,8}"
        r"(?P<name>[\w.-]{1,80})",
        "containerd's log",
        "containerd starts without its CRI plugin: default_runtime_name is {name}, and its "
        "configuration has no runtime of that name.",
        "Add the table of the runtime {name} below containerd.runtimes in "
        "/etc/containerd/config.toml, beside nvidia, and restart containerd. nvidia-ctk runtime "
        "configure --config-source=command takes it from containerd's own configuration; "
        "kubegpu.nodes.site (tag runtime) keeps it.",
        "invalid plugin config: no corresponding runtime configured in `containerd.runtimes` for "
        '`containerd` `default_runtime_name = "runc"',
        "github.com/NVIDIA/k8s-device-plugin/pull/1145",
        _READ_REPORTS,
    ),
    Rule(
        "cri_missing",
        r"unknown service runtime\.v1(?:alpha2)?\.RuntimeService",
        "kubelet, crictl",
        "containerd runs without its CRI plugin: it is disabled in its configuration, or could not "
        "start.",
        "Take cri out of disabled_plugins (containerd_enable_cri of the role "
        "nvidia_container_toolkit), then restart containerd; ctr plugins ls names its error.",
        "rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService",
        "containerd's own words",
    ),
    Rule(
        "crio_monitor_missing",
        r"failed to translate monitor fields for runtime (?P<name>[\w.-]{1,80}): "
        r"[^\n]{0,60}?conmon\b[^\n]{0,20}executable file not found",
        "CRI-O's log",
        "CRI-O does not start: its handler {name} has no monitor_path, so that CRI-O searches "
        "conmon in PATH, where it is not. nvidia-ctk writes such a handler.",
        "Run kubegpu.nodes.site (tag runtime) for this node: it completes the handler in "
        "/etc/crio/crio.conf.d/99-nvidia.toml, or names the file that CRI-O reads later. Or add "
        "monitor_path to the table crio.runtime.runtimes.{name}, as the node's own runtime has it.",
        "validating runtime config: monitor fields translation: failed to translate monitor fields "
        'for runtime nvidia: exec: "conmon": executable file not found in $PATH',
        "github.com/NVIDIA/nvidia-container-toolkit/issues/681; cri-o/cri-o pkg/config/config.go",
        _READ_REPORTS,
    ),
    Rule(
        "containerd_not_running",
        r"(?:dial(?:ing)? [^\w/]{0,16}(?:unix [^\w/]{0,16})?|stat [^\w/]{0,16})"
        r"(?P<socket>/[\w./-]{0,200}?containerd[\w.-]{0,60}?\.sock)"
        r"(?=.{0,120}?(?:no such file|refused|deadline|timeout|denied|connect:))",
        "ctr, crictl, kubelet",
        "containerd does not answer at {socket}.",
        "Check: systemctl status containerd; journalctl --unit containerd. Check the configuration "
        "with: containerd config dump.",
        'ctr: failed to dial "/run/containerd/containerd.sock": connection error: desc = '
        '"transport: error while dialing: dial unix /run/containerd/containerd.sock: connect: no '
        'such file or directory"',
        "ctr's own words",
        over=r"containerd successfully booted",
    ),
    Rule(
        "docker_not_running",
        r"Cannot connect to the Docker daemon",
        "docker",
        "dockerd does not answer.",
        "Check: systemctl status docker; journalctl --unit docker.",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
        "running?",
        "docker's own words",
    ),
)
