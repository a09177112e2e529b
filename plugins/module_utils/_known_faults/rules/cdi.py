# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages about CDI specifications and the modes of NVIDIA's container toolkit. Data."""

from __future__ import annotations

from ..types import Rule

_PLUGIN_SOURCE = "github.com/NVIDIA/k8s-device-plugin v0.20.0: "
_TOOLKIT_SOURCE = "github.com/NVIDIA/nvidia-container-toolkit v1.20.0: "
_READ_CDI = "2026-11-23"
_READ_REPORTS = "2026-11-28"

#: The first releases of engines that read 0.7.0: _nvidia/cdi_versions.py.
_VERSION_STEP = (
    "Compare cdiVersion in /var/run/cdi/nvidia.yaml and /etc/cdi with the engine's release: 0.7.0, "
    "which NVIDIA's toolkit writes since 1.19.1, needs containerd 1.7.16, Docker 26.1, CRI-O 1.30 "
    "or Podman 5.1. Upgrade the engine. If it cannot be upgraded, have an older version written: "
    "set NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=no-additional-gids-for-device-nodes in "
    "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env and restart nvidia-cdi-refresh.service. "
    "For a file that a user made: nvidia-ctk cdi generate --feature-flag "
    "no-additional-gids-for-device-nodes --output=FILE."
)
_VERSION_SOURCE = (
    "github.com/NVIDIA/nvidia-container-toolkit/issues/1940; NVIDIA/cloud-native-docs: "
    "container-toolkit/release-notes.md (1.19.1)"
)


def _too_new(before: str, engine: str, when: str) -> Rule:
    """Return the row of an unresolvable device whose specification the engine does not read.

    :param before: what stands before the message in the engine's words.
    """
    return Rule(
        "cdi_version",
        rf"{before}unresolvable CDI devices?\s{{1,4}}"
        r"(?P<device>nvidia\.com/(?!pgpu)[\w./=:-]{0,200}\w)",
        engine,
        "The container engine is too old for the CDI specification of {device}: it does not read "
        "a specification of that version, and knows none of its devices.",
        _VERSION_STEP,
        "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all"
        if engine == "podman"
        else "Error response from daemon: CDI device injection failed: unresolvable CDI devices "
        "nvidia.com/gpu=all",
        _VERSION_SOURCE,
        _READ_REPORTS,
        when=(when,),
        family="cdi_device_unknown",
    )


CDI = (
    Rule(
        "cdi_version",
        r"failed to (?:load|parse) CDI Spec[^\n]{0,400}?(?:unknown field \W{0,4}(?P<field>\w{1,40})"
        r"|invalid version \W{0,4}(?P<version>v?\d[\d.]{1,10}))",
        "podman --log-level=debug, containerd, dockerd, CRI-O",
        "The container engine is too old for the CDI specification: it does not know {field}"
        "{version} in it, and leaves out all of its devices.",
        _VERSION_STEP,
        'failed to load CDI Spec failed to parse CDI Spec "/etc/cdi/nvidia.yaml": failed to '
        "unmarshal CDI Spec: error unmarshaling JSON: while decoding JSON: json: unknown field "
        '"additionalGids"',
        "github.com/NVIDIA/nvidia-container-toolkit/issues/1860; "
        "github.com/cncf-tags/container-device-interface: pkg/cdi/spec.go",
        _READ_REPORTS,
        covers=("cdi_device_unknown", "cdi_version"),
    ),
    Rule(
        "hook_called_directly",
        r"NVIDIA Container Runtime Hook directly .{0,80}?is not supported",
        "the toolkit's hook, with docker run --gpus or a hook of the runtime",
        "The toolkit's mode is not legacy, and its hook was called without the nvidia runtime, "
        "which it does not allow then.",
        "Start the container with --runtime=nvidia (with -e NVIDIA_VISIBLE_DEVICES=all) instead of "
        "--gpus, or set nvidia-container-runtime.mode = legacy or auto in the toolkit's "
        "config.toml (nvidia_container_toolkit_settings).",
        "invoking the NVIDIA Container Runtime Hook directly (e.g. specifying the docker --gpus "
        "flag) is not supported. Please use the NVIDIA Container Runtime (e.g. specify the "
        "--runtime=nvidia flag) instead",
        f"{_TOOLKIT_SOURCE}cmd/nvidia-container-runtime-hook/hook_config.go",
        _READ_CDI,
    ),
    Rule(
        "cdi_uuid_unknown",
        r"failed to get device handle from UUID(?: \W{0,8}(?P<uuid>[\w-]{1,80})\W{0,8})?: "
        r"(?P<what>[^\n\\\"]{1,80})",
        "the nvidia runtime in mode jit-cdi, nvidia-ctk cdi generate",
        "The container asks for a GPU {uuid} that the driver does not have ({what}): another card, "
        "MIG devices that were recreated, or a GPU that is lost.",
        "Compare with nvidia-smi -L; after a change of cards or of MIG delete the device plugin's "
        "pod, so that it offers what is there now.",
        'failed to get device handle from UUID "GPU-5ca1ab1e-0000-4000-8000-000000000009": Not '
        "Found",
        f"{_TOOLKIT_SOURCE}pkg/nvcdi/lib-nvml.go, lib-csv.go",
        _READ_CDI,
    ),
    Rule(
        "cdi_conflict",
        r"conflicting device \W{0,8}(?P<device>[\w./=:-]{1,200}\w)\W{0,8} "
        r"\(specs \W{0,8}(?P<one>/[\w./-]{1,200})\W{1,12}(?P<other>/[\w./-]{1,200})",
        "containerd, dockerd, CRI-O, nvidia-ctk cdi list",
        "Two CDI specifications have the device {device}, {one} and {other}, so that neither "
        "counts.",
        "Remove the one that is not kept up to date: nvidia-cdi-refresh writes "
        "/var/run/cdi/nvidia.yaml, while a file that a user made in /etc/cdi is left unchanged.",
        'conflicting device "nvidia.com/gpu=0" (specs "/etc/cdi/nvidia.yaml", '
        '"/etc/cdi/nvidia-old.yaml")',
        "github.com/cncf-tags/container-device-interface: pkg/cdi/cache.go",
        _READ_CDI,
        covers=("cdi_device_unknown",),
    ),
    Rule(
        "imex_channel_missing",
        r"requested IMEX channel (?P<one>channel\d{1,5}) does not exist"
        r"|IMEX channel (?P<two>\d{1,5}) not found at",
        "the device plugin's log, nvidia-ctk cdi generate, the nvidia runtime",
        "The device node of the IMEX channel {one}{two} is not on the node "
        "(/dev/nvidia-caps-imex-channels).",
        "Load the module nvidia with NVreg_CreateImexChannel0=1, which makes channel 0, and see "
        "that nvidia-imex runs (systemctl status nvidia-imex). Without IMEX leave imex.channelIDs "
        "out of the device plugin's configuration, or set imex.required: false.",
        "error querying IMEX channels: requested IMEX channel channel0 does not exist",
        f"{_PLUGIN_SOURCE}internal/imex/imex.go; {_TOOLKIT_SOURCE}pkg/nvcdi/lib-imex.go",
        _READ_CDI,
    ),
    Rule(
        "cdi_automatic_failed",
        r"unresolvable CDI devices?\s+(?P<device>runtime\.nvidia\.com/[\w./=:-]{0,200}\w)",
        "the nvidia runtime, when a container starts",
        "The nvidia runtime makes the CDI specification of {device} itself at each start; that "
        "failed, and the reason is in its log only. No file on the node ever has the kind "
        "runtime.nvidia.com/gpu.",
        "Run nvidia-ctk cdi generate on the node without writing a file: it shows what fails, "
        "often the driver (nvidia-smi). Or read the runtime's log: nvidia-container-runtime.debug "
        "in /etc/nvidia-container-runtime/config.toml names its file.",
        "failed to inject CDI devices: unresolvable CDI devices runtime.nvidia.com/gpu=all: "
        "unknown",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/1537",
        _READ_REPORTS,
        covers=("cdi_device_unknown",),
    ),
    Rule(
        "cdi_dra_device",
        r"unresolvable CDI devices?\s+(?P<device>k8s\.gpu\.nvidia\.com/[\w./=:-]{0,200}\w)",
        "containerd, CRI-O, when a pod with a DRA claim starts",
        "The container engine does not find {device}. The kubelet plugin of NVIDIA's DRA driver "
        "writes that specification for each claim; the container toolkit does not.",
        "See that the engine has CDI enabled and reads the folder of that plugin (/var/run/cdi), "
        "read the log of the DRA driver's kubelet plugin on this node, and delete its pod, so that "
        "it starts again.",
        "Error: failed to create containerd container: CDI device injection failed: unresolvable "
        "CDI devices k8s.gpu.nvidia.com/device=gpu-1",
        "github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/736",
        covers=("cdi_device_unknown",),
    ),
    Rule(
        "cdi_operator_device",
        r"unresolvable CDI devices?\s+(?P<device>management\.nvidia\.com/[\w./=:-]{0,200}\w)",
        "the nvidia runtime, containerd",
        "The container engine does not find {device}. The GPU operator's toolkit writes that "
        "specification, for its own containers only.",
        "Use the RuntimeClass nvidia instead of nvidia-cdi, or a newer toolkit, and read the log "
        "of the operator's toolkit pod on this node.",
        "failed to inject CDI devices: unresolvable CDI devices "
        "management.nvidia.com/gpu=GPU-5ca1ab1e-0000-4000-8000-000000000001",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/1239",
        covers=("cdi_device_unknown",),
    ),
    Rule(
        "cdi_vendor_device",
        r"unresolvable CDI devices?\s+"
        r"(?P<device>(?P<vendor>(?:[\w-]{1,63}\.){0,4}(?:amd|intel)\.com)/[\w./=:-]{0,200}\w)",
        "containerd, CRI-O, dockerd",
        "The container engine does not find {device}: the node has no CDI specification of "
        "{vendor} with it.",
        "See which specifications are in /etc/cdi and /var/run/cdi. The toolkit or the DRA driver "
        "of {vendor} writes this one: read its log on this node.",
        "unresolvable CDI devices amd.com/gpu=0",
        "github.com/cncf-tags/container-device-interface: pkg/cdi/cache.go",
        covers=("cdi_device_unknown",),
    ),
    Rule(
        "cdi_empty_edits",
        r"invalid device, empty device edits",
        "nvidia-ctk cdi generate, the kubelet plugin of NVIDIA's DRA driver",
        "The CDI specification cannot be written: no device file was found for one of its devices.",
        "Check ls -l /dev/nvidia* on the node. The device plugin runs with the toolkit's mode "
        "legacy meanwhile (nvidia-container-runtime.mode). After the toolkit or the driver was "
        "replaced, delete the pod of the DRA driver's kubelet plugin, so that it starts again.",
        "failed to save CDI spec: failed to validate CDI spec: failed to validate device: invalid "
        "device, empty device edits",
        "github.com/kaito-project/kaito/issues/2326",
        covers=("no_plugin_devices",),
    ),
    _too_new("setting up CDI devices: ", "podman", "cdi_newer_than_podman"),
    _too_new(
        "Error response from daemon: CDI device injection failed: ",
        "dockerd",
        "cdi_newer_than_docker",
    ),
    _too_new(
        "(?<!setting up CDI devices: )"
        "(?<!Error response from daemon: CDI device injection failed: )",
        "containerd, CRI-O, the nvidia runtime",
        "cdi_newer_than_engine",
    ),
    Rule(
        "docker_cdi_off",
        r"could not select device driver \W{0,4}cdi\W{1,4}with capabilities",
        "Docker",
        "Docker's daemon serves no CDI devices: they are not turned on in its configuration.",
        'Set {{"features": {{"cdi": true}}}} in the daemon.json of this daemon (/etc/docker, for '
        "Docker without root the folder docker of the user's configuration), and restart it. "
        "docker info then names the folders of CDI specifications.",
        'docker: Error response from daemon: could not select device driver "cdi" with '
        "capabilities: [].",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/434",
        "2026-11-28",
    ),
)
