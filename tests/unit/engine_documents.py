# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Made configurations that containerd and dockerd load, in all manners of writing.

The seed of a run is in its summary; ``KUBEGPU_PROPERTY_SEED`` repeats it.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass

from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st

from tests.tools import tiers

SEED = int(os.environ.get("KUBEGPU_PROPERTY_SEED", "1"))
CRI = {
    1: "cri",
    2: "io.containerd.grpc.v1.cri",
    3: "io.containerd.cri.v1.runtime",
    4: "io.containerd.cri.v1.runtime",
}
# Which containerd loads which config version.
LOADS = {1: ((1, 6), (1, 7)), 2: ((1, 6), (1, 7), (2, 1)), 3: ((2, 1),), 4: ((2, 3),)}


def examples(count):
    """Run a test with that many made configurations, all from the run's seed.

    The default tier takes a quarter of them, others each time.
    """

    def decorate(test):
        configured = settings(
            max_examples=count if tiers.is_full() else max(count // 4, 1),
            deadline=None,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        )
        return seed(SEED)(configured(test))

    return decorate


@dataclass(frozen=True)
class Made:
    """A configuration of containerd: its text, its config version, and who loads it."""

    text: str
    version: int
    containerd: tuple[int, int]


# Tables beside CRI's, with keys that every release knows.
_OTHERS = {
    "grpc": [("max_recv_message_size", "16_777_216"), ("max_send_message_size", "0x1000000")],
    "debug": [("level", '"info"'), ("level", "'warn'")],
    "metrics": [("grpc_histogram", "false"), ("address", '"127.0.0.1:1338"')],
    "timeouts": [('"io.containerd.timeout.shim.load"', '"5s"')],
    "cgroup": [("path", '""')],
}
_ROOT = [("oom_score", "-1_0"), ("root", "'/var/lib/containerd'"), ("oom_score", "-999")]
_CRI = [
    ("max_container_log_line_size", "0x4000"),
    ("max_container_log_line_size", "16_384"),
    ("enable_selinux", "false"),
    ("device_ownership_from_security_context", "true"),
]
_OPTIONS = [
    ("SystemdCgroup", "true"),
    ("SystemdCgroup", "false"),
    ("systemdCgroup", "true"),
    ("NoPivotRoot", "true"),
    ("Root", '"/run/runc # not a comment"'),
    ("BinaryName", '"/usr/sbin/runc"'),
]
_KINDS = {
    "runc": "io.containerd.runc.v2",
    "crun": "io.containerd.runc.v2",
    "kata": "io.containerd.kata.v2",
    "nvidia": "io.containerd.runc.v2",
}
_COMMENT = re.compile(r"(?:  # why .*| #|\t)$")
_COMMENTS = ["", "", "", "  # why [x] = 1", " #", "\t"]
_BETWEEN = [[], [], [""], ["# a comment"], ["", "# [commented.out]", "# key = 'x'"], ["", ""]]


@st.composite
def containerd_configs(draw, versions=(1, 2, 3, 4), containerd=None, plain=False):
    """Return a configuration.

    :param containerd: only what that release loads.
    :param plain: one that a node works with, and that has no handler nvidia yet.
    """

    def pick(values):
        return draw(st.sampled_from(list(values)))

    loads = [
        (version, release)
        for version in versions
        for release in LOADS[version]
        if containerd in (None, release)
    ]
    version, release = pick(loads)
    quote = pick("\"'")
    cri = "plugins.cri" if version == 1 else f"plugins.{quote}{CRI[version]}{quote}"
    indent, step = pick(["", "  ", "\t"]), pick(["", "  ", "\t"])
    equals = pick([" = ", "=", "   =  "])

    def pairs(known, depth):
        chosen = draw(
            st.lists(st.sampled_from(known), max_size=3, unique_by=lambda item: item[0].lower())
        )
        return [
            indent * depth + step + key + equals + value + pick(_COMMENTS) for key, value in chosen
        ]

    def table(path, lines, depth):
        return [indent * depth + f"[{path}]" + pick(_COMMENTS), *lines]

    tables = []
    for name in draw(st.lists(st.sampled_from(sorted(_OTHERS)), max_size=3, unique=True)):
        tables.append(table(name, pairs(_OTHERS[name], 0), 0))
    if draw(st.booleans()):
        tables.append(table(cri, pairs(_CRI, 1), 1))
    names = draw(st.lists(st.sampled_from(sorted(_KINDS)), max_size=3, unique=True))
    if plain:
        names = [name for name in names if name != "nvidia"]
        if names and "runc" not in names:
            names.append("runc")
    for name in names:
        path = f"{cri}.containerd.runtimes.{pick([name, quote + name + quote])}"
        kind = step + indent * 2 + "runtime_type" + equals + f'"{_KINDS[name]}"'
        options = pairs(_OPTIONS, 3) if name != "kata" else []
        manner = pick(["table", "inline", "dotted", "none"])
        if manner == "inline" or not options:
            words = ", ".join(_COMMENT.sub("", line).strip() for line in options)
            tables.append(
                table(path, [kind, *([f"options{equals}{{ {words} }}"] if words else [])], 2)
            )
        elif manner == "dotted":
            dotted = [line.replace(line.strip(), "options." + line.strip()) for line in options]
            tables.append(table(path, [kind, *dotted], 2))
        else:
            tables.append(table(path, [kind], 2))
            tables.append(table(f"{path}.options", options, 3))
    default = pick([None, None, *names, "runc"] if "runc" in names else [None, None])
    if default is not None:
        tables.append(
            table(f"{cri}.containerd", [step + f'default_runtime_name{equals}"{default}"'], 1)
        )
    tables = list(draw(st.permutations(tables)))
    head = pairs(_ROOT, 0)
    if version > 1:
        head.insert(draw(st.integers(0, len(head))), f"version{equals}{version}")
    lines = [*pick(_BETWEEN), *head]
    for made in tables:
        lines += [*pick(_BETWEEN), *made]
    newline = pick(["\n", "\n", "\r\n"])
    end = pick([newline, newline, "", newline * 2])
    return Made(newline.join([*lines, *pick(_BETWEEN)]) + end, version, release)


# -- dockerd -------------------------------------------------------------------------------------

_DAEMON = {
    "log-driver": st.sampled_from(["json-file", "journald"]),
    "log-opts": st.fixed_dictionaries({"max-size": st.just("10m")}),
    "max-concurrent-downloads": st.integers(1, 2**31),
    "debug": st.booleans(),
    "insecure-registries": st.lists(st.sampled_from(["a.example:5000", "b.example"]), unique=True),
    "labels": st.lists(st.sampled_from(["a=b", "ü=\u2603"]), max_size=1),
    "default-runtime": st.just("runc"),
    "live-restore": st.booleans(),
}
_RUNTIME = st.fixed_dictionaries(
    {"path": st.sampled_from(["/usr/bin/crun", "crun"])},
    optional={"runtimeArgs": st.lists(st.sampled_from(["--debug", "--x=1"]), max_size=2)},
)


@st.composite
def daemon_configs(draw, odd=True):
    """Return a ``daemon.json``; ``odd`` ones begin with a mark or are no object at all."""

    def pick(values):
        return draw(st.sampled_from(list(values)))

    if odd and draw(st.integers(0, 19)) == 0:
        return pick(["", "\n", "null", "{}", "\ufeff{}\n", " {\n}\n"])
    names = draw(st.lists(st.sampled_from(sorted(_DAEMON)), max_size=5, unique=True))
    data = {name: draw(_DAEMON[name]) for name in names}
    if draw(st.booleans()):
        data["runtimes"] = draw(
            st.dictionaries(st.sampled_from(["crun", "other", "a b"]), _RUNTIME, max_size=2)
        )
    if draw(st.booleans()):
        data["features"] = draw(
            st.dictionaries(st.sampled_from(["buildkit", "containerd-snapshotter"]), st.booleans())
        )
    data = {key: data[key] for key in draw(st.permutations(list(data)))}
    indent = pick([None, 1, 2, 4, "\t"])
    separators = pick([(",", ":"), (", ", ": "), (",", ": "), (" ,", " : ")])
    text = json.dumps(data, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    text += pick(["", "\n", "\n\n"])
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text
