# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Configurations as they are found on nodes, for every containerd that loads them.

``@CRI@`` stands for CRI's table in the config version at hand, ``@VERSION@`` for its version line,
``@IMPORTS@`` for the folder of imported files.
"""

from __future__ import annotations

from dataclasses import dataclass, field

CRI = {
    1: "plugins.cri",
    2: 'plugins."io.containerd.grpc.v1.cri"',
    3: "plugins.'io.containerd.cri.v1.runtime'",
}
VERSION_LINE = {1: "", 2: "version = 2\n", 3: "version = 3\n"}
# Which config versions each containerd is tried with.
LOADS = {"1.6": (1, 2), "1.7": (1, 2), "2.1": (1, 2, 3)}


@dataclass(frozen=True)
class Input:
    """One configuration. ``imported`` is the files that the root file imports, by name."""

    name: str
    root: str | None
    imported: dict[str, str] = field(default_factory=dict)
    config_versions: tuple[int, ...] = (1, 2, 3)
    containerd: tuple[str, ...] = ("1.6", "1.7", "2.1")


RUNC = """\
[@CRI@.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  privileged_without_host_devices = true

  [@CRI@.containerd.runtimes.runc.options]
    SystemdCgroup = true
"""

COMMENTED = """\
# The admin's own words, kept to the byte.
@VERSION@oom_score = -0x1    # a number in hexadecimal
root   =   '/var/lib/containerd'   # odd spacing

[grpc]
\taddress = "/run/containerd/containerd.sock"
\tmax_recv_message_size = 16_777_216

[timeouts]
  "io.containerd.timeout.shim.load" = "5s"

[@CRI@]
# sandbox_image = "registry.example/pause:3.9"
max_container_log_line_size = 0x4000

  [@CRI@.containerd]
    # default_runtime_name = "crun"

    [@CRI@.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"  # the only one

      [@CRI@.containerd.runtimes.runc.options]
        SystemdCgroup = true
        # NoPivotRoot = true

# what follows belongs to metrics
[metrics]
  address = "127.0.0.1:1338"   # no line end after this\
"""

INPUTS = (
    Input("no_file", None, config_versions=(2, 3)),
    Input("empty_file", "", config_versions=(1,)),
    Input("comments_only", "# nothing here\n\n#version = 2\n", config_versions=(1,)),
    Input("other_settings_only", '@VERSION@[debug]\n  level = "info"\n'),
    Input("no_explicit_runc", "@VERSION@\n[@CRI@]\n  max_container_log_line_size = 8192\n"),
    Input("runc_with_systemd_cgroup", "@VERSION@\n" + RUNC),
    Input("runc_without_line_end", ("@VERSION@\n" + RUNC).rstrip("\n")),
    Input("carriage_returns", ("@VERSION@\n" + RUNC).replace("\n", "\r\n")),
    Input("byte_order_mark", "\ufeff@VERSION@\n" + RUNC, containerd=("1.6", "1.7")),
    Input("comments_and_number_formats", COMMENTED.replace("-0x1 ", "-1 ")),
    Input(
        "cri_disabled_by_docker_package",
        '#   Copyright the authors\n\ndisabled_plugins = ["cri"]\n\n'
        '#root = "/var/lib/containerd"\n',
        config_versions=(1,),
    ),
    Input(
        "cri_disabled_among_others",
        "@VERSION@disabled_plugins = [\n"
        '  "io.containerd.snapshotter.v1.zfs", # not here\n'
        '  "io.containerd.grpc.v1.cri",\n]\n\n' + RUNC,
        config_versions=(2, 3),
    ),
    Input(
        "kata_is_default",
        "@VERSION@\n[@CRI@.containerd]\n"
        '  default_runtime_name = "kata"\n\n'
        "[@CRI@.containerd.runtimes.kata]\n"
        '  runtime_type = "io.containerd.kata.v2"\n'
        "  privileged_without_host_devices = true\n\n"
        "[@CRI@.containerd.runtimes.kata.options]\n"
        '  ConfigPath = "/opt/kata/configuration.toml"\n\n' + RUNC,
    ),
    Input(
        "binary_name_in_two_cases",
        "@VERSION@\n"
        + RUNC
        + '    binaryName = "/usr/bin/crun"\n    BinaryName = "/usr/bin/runc"\n',
    ),
    Input(
        "handler_with_binary_name_in_two_cases",
        "@VERSION@\n" + RUNC + "\n[@CRI@.containerd.runtimes.nvidia]\n"
        '  runtime_type = "io.containerd.runc.v2"\n'
        "[@CRI@.containerd.runtimes.nvidia.options]\n"
        '  binaryName = "/usr/bin/runc"\n'
        '  BinaryName = "/usr/bin/nvidia-container-runtime"\n'
        "  SystemdCgroup = true\n",
    ),
    Input(
        "handler_without_systemd_cgroup",
        "@VERSION@\n" + RUNC + "\n[@CRI@.containerd.runtimes.nvidia]\n"
        '  runtime_type = "io.containerd.runc.v2"\n'
        '  pod_annotations = ["example.com/*"] # the admin\'s\n'
        "[@CRI@.containerd.runtimes.nvidia.options]\n"
        '  BinaryName = "/usr/local/nvidia/toolkit/nvidia-container-runtime"\n',
    ),
    Input(
        "default_left_behind",
        '@VERSION@\n[@CRI@.containerd]\n  default_runtime_name = "nvidia"\n\n' + RUNC,
    ),
    Input(
        "tables_out_of_order",
        "@VERSION@\n" + RUNC + '\n[debug]\n  level = "info"\n\n[@CRI@.cni]\n'
        '  conf_dir = "/etc/cni/net.d"\n\n[metrics]\n  grpc_histogram = false\n\n'
        "[@CRI@]\n  enable_selinux = false\n",
    ),
    Input(
        "inline_tables",
        "@VERSION@\n[@CRI@.containerd]\n"
        'runtimes = { runc = { runtime_type = "io.containerd.runc.v2", '
        "options = { SystemdCgroup = true } } } # all in one\n",
    ),
    Input(
        "dotted_keys",
        "@VERSION@\n[@CRI@.containerd]\n"
        'runtimes.runc.runtime_type = "io.containerd.runc.v2"\n'
        "runtimes.runc.options.SystemdCgroup = true\nsnapshotter = 'overlayfs'\n",
    ),
    Input(
        "imported_registry_and_runc",
        '@VERSION@imports = ["@IMPORTS@/*.toml"]\n\n'
        "[@CRI@]\n  max_container_log_line_size = 4096\n",
        {
            "10-cni.toml": '@VERSION@\n[@CRI@.cni]\n  conf_dir = "/etc/cni/other.d"\n',
            "20-runc.toml": "@VERSION@\n# the admin's runc\n"
            + RUNC
            + "\n[@CRI@]\n  enable_selinux = true\n",
        },
        config_versions=(2, 3),
    ),
    Input(
        "imported_settings_of_other_plugins",
        '@VERSION@imports = ["@IMPORTS@/*.toml"]\n\n' + RUNC,
        {"debug.toml": '@VERSION@\n[debug]\n  level = "info"\n'},
        config_versions=(2, 3),
    ),
    Input(
        "registry_password",
        "@VERSION@\n" + RUNC + '\n[plugins."io.containerd.grpc.v1.cri".registry.configs.'
        '"registry.example".auth]\n  username = "robot"\n  password = "correct horse"\n',
        config_versions=(2,),
    ),
)


def fill(text: str, version: int, imports: str) -> str:
    """Return the text for one config version."""
    return (
        text.replace("@CRI@", CRI[version])
        .replace("@VERSION@", VERSION_LINE[version])
        .replace("@IMPORTS@", imports)
    )


def cases():
    """Give (input, containerd, config version) for all that go together."""
    for item in INPUTS:
        for containerd in item.containerd:
            versions = [one for one in LOADS[containerd] if one in item.config_versions]
            if item.root is None:
                versions = versions[-1:]
            for version in versions:
                yield item, containerd, version
