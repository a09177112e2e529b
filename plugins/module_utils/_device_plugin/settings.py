# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of NVIDIA's device plugin and GPU feature discovery, by release. Data and checks.

Each entry names the field of a config, the environment variable and the value of NVIDIA's chart
for one setting. Source: github.com/NVIDIA/k8s-device-plugin, tags v0.14.0 to v0.20.0, read
2026-11-23: ``api/config/v1/*.go`` (fields and types), ``cmd/nvidia-device-plugin/main.go`` and
``cmd/gpu-feature-discovery/main.go`` (variables and permitted values), and
``deployments/helm/nvidia-device-plugin/templates`` (values).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError
from .._core.names import most_similar
from .._core.versions import version_numbers

#: Major and minor number, such as (0, 20).
Release = tuple[int, int]

#: The newest release that the table knows.
NEWEST: Release = (0, 20)
#: The oldest release that was read; earlier ones are assumed to have the same settings.
OLDEST: Release = (0, 14)

BOOLEAN = "boolean"
STRING = "string"
PATH = "absolute path"
DURATION = "duration, such as 60s"
STRINGS = "string or list of strings"

# The whole tag counts: one of a commit or a branch can contain a version too.
_RELEASE_TAG = re.compile(r"v?(\d+\.\d+)\.\d+(?:\Z|[-+])")
_DURATION = re.compile(r"(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|ms|s|m|h))+\Z")
# The values that Go's strconv.ParseBool accepts.
_TRUTH = {
    **dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "f", "F", "false", "False", "FALSE"), False),
}


def is_true(value: Any) -> bool:
    """Return whether Go's strconv.ParseBool reads the value, or its text, as true."""
    return _TRUTH.get(str(value), False)


# Minimum similarity to a known name for a suggestion.
_NEAR = 0.6
# The same for environment variables, where unknown names are common.
_ALMOST = 0.88


@dataclass(frozen=True)
class Setting:
    """One setting of the plugin or of feature discovery.

    :param path: the field of a config, with dots, below ``flags``; empty where there is none.
    :param variables: environment variables, in the order of precedence.
    :param kind: the type of the field.
    :param since: the first release that has it.
    :param values: the permitted values, each with the first release that has it; empty is any.
    :param option: the role's option for it, without its prefix; empty where there is none.
    :param everywhere: whether the option applies to all nodes, so that configs must not differ.
    :param chart: the value of NVIDIA's chart, with dots, and the first release that has it.
    """

    path: str
    variables: tuple[str, ...]
    kind: str
    since: Release = OLDEST
    values: Mapping[str, Release] = field(default_factory=dict)
    option: str = ""
    everywhere: bool = False
    chart: tuple[str, Release] | None = None


def _of(*names: str) -> dict[str, Release]:
    return dict.fromkeys(names, OLDEST)


SETTINGS = (
    Setting("migStrategy", ("MIG_STRATEGY",), STRING, values=_of("none", "single", "mixed"),
            option="mig_strategy"),
    Setting("failOnInitError", ("FAIL_ON_INIT_ERROR",), BOOLEAN, option="fail_on_init_error"),
    Setting("mpsRoot", ("MPS_ROOT",), PATH, (0, 15), option="mps_root", everywhere=True),
    Setting("nvidiaDriverRoot", ("NVIDIA_DRIVER_ROOT",), PATH, option="driver_root",
            everywhere=True),
    Setting("nvidiaDevRoot", ("NVIDIA_DEV_ROOT",), PATH, (0, 16),
            chart=("nvidiaDevRoot", (0, 16))),
    Setting("gdrcopyEnabled", ("GDRCOPY_ENABLED",), BOOLEAN, (0, 18),
            chart=("gdrcopyEnabled", (0, 18))),
    Setting("gdsEnabled", ("GDS_ENABLED",), BOOLEAN, option="gds_enabled"),
    Setting("mofedEnabled", ("MOFED_ENABLED",), BOOLEAN, option="mofed_enabled"),
    # The token and Role of the pods depend on it.
    Setting("useNodeFeatureAPI", (), BOOLEAN, (0, 15), option="feature_discovery_api",
            everywhere=True),
    # Feature discovery also supports vfio (v0.20), but the plugin reads the same config.
    Setting("deviceDiscoveryStrategy", ("DEVICE_DISCOVERY_STRATEGY",), STRING, (0, 16),
            values=_of("auto", "nvml", "tegra"), chart=("deviceDiscoveryStrategy", (0, 16))),
    Setting("plugin.passDeviceSpecs", ("PASS_DEVICE_SPECS",), BOOLEAN, option="pass_device_specs"),
    Setting("plugin.deviceListStrategy", ("DEVICE_LIST_STRATEGY",), STRINGS,
            values={**_of("envvar", "volume-mounts", "cdi-annotations"), "cdi-cri": (0, 15)},
            option="device_list_strategy"),
    Setting("plugin.deviceIDStrategy", ("DEVICE_ID_STRATEGY",), STRING,
            values=_of("uuid", "index"), option="device_id_strategy"),
    Setting("plugin.cdiAnnotationPrefix", ("CDI_ANNOTATION_PREFIX",), STRING),
    Setting("plugin.nvidiaCTKPath", ("NVIDIA_CTK_PATH",), PATH, option="nvidia_ctk_path",
            everywhere=True),
    Setting("plugin.containerDriverRoot", ("CONTAINER_DRIVER_ROOT",), PATH,
            option="container_driver_root", everywhere=True),
    Setting("plugin.sharedDevicesAllocationPolicy", ("SHARED_DEVICES_ALLOCATION_POLICY",), STRING,
            (0, 20), values={"distributed": (0, 20), "packed": (0, 20)}),
    Setting("gfd.oneshot", (), BOOLEAN),
    Setting("gfd.noTimestamp", (), BOOLEAN),
    Setting("gfd.sleepInterval", (), DURATION),
    Setting("gfd.outputFile", (), PATH),
    Setting("gfd.machineTypeFile", (), PATH),
    # Settings without a config field.
    Setting("", ("NVIDIA_CDI_HOOK_PATH",), PATH, (0, 16), chart=("cdi.nvidiaHookPath", (0, 16))),
    # An alias of CONTAINER_DRIVER_ROOT that takes precedence over it.
    Setting("", ("DRIVER_ROOT_CTR_PATH",), PATH, (0, 16), option="container_driver_root",
            everywhere=True),
    Setting("", ("KUBELET_SOCKET",), PATH, (0, 17)),
    Setting("", ("IMEX_CHANNEL_IDS",), STRING, (0, 17), values={"": (0, 17), "0": (0, 17)}),
    Setting("", ("IMEX_REQUIRED",), BOOLEAN, (0, 17)),
    Setting("", ("CDI_FEATURE_FLAGS",), STRING, (0, 19), chart=("cdi.featureFlags", (0, 19))),
    Setting("", ("CDI_DISABLE_HOOKS",), STRING, (0, 20)),
)  # fmt: skip

#: Sections of a config, each with the first release that has it.
TOP: Mapping[str, Release] = {
    "version": OLDEST,
    "flags": OLDEST,
    "resources": OLDEST,
    "sharing": OLDEST,
    "imex": (0, 17),
}
SHARING: Mapping[str, Release] = {"timeSlicing": OLDEST, "mps": (0, 15)}
#: The first release whose image contains GPU feature discovery.
DISCOVERY_SINCE: Release = (0, 15)
#: From this release, the plugin's patterns match whole names, so that a MIG profile with an
#: attribute (``1g.24gb-me``, ``1g.10gb+me``) is a resource of its own (k8s-device-plugin #1807,
#: #1462).
WHOLE_NAMES: Release = (0, 20)
#: Variables that the role sets itself, with its own paths.
_OURS = ("CONFIG_FILE",)

_BY_PATH = {one.path: one for one in SETTINGS if one.path}
_BY_VARIABLE = {name: one for one in SETTINGS for name in one.variables}


def read_release(version: str) -> Release | None:
    """Return the release of a tag; None for other tags, such as those of a commit."""
    match = _RELEASE_TAG.match(version)
    if match is None:
        return None
    major, minor = version_numbers(match[1])
    return major, minor


def release_text(release: Release) -> str:
    """Return ``v0.20`` for (0, 20)."""
    return f"v{release[0]}.{release[1]}"


def is_newer(release: Release | None) -> bool:
    """Return whether a release is newer than the table; an unknown release counts as newer."""
    return release is None or release > NEWEST


def at_least(release: Release | None, since: Release) -> bool:
    """Return whether a release is at least ``since``; an unknown release counts as newer."""
    return release is None or release >= since


def settings_at(prefix: str) -> dict[str, Setting]:
    """Return the settings directly below a section of ``flags``: ``""``, ``plugin`` or ``gfd``."""
    begin = f"{prefix}." if prefix else ""
    return {
        path[len(begin) :]: one
        for path, one in _BY_PATH.items()
        if path.startswith(begin) and "." not in path[len(begin) :]
    }


def setting(path: str) -> Setting:
    """Return the setting of a config field."""
    return _BY_PATH[path]


@dataclass
class Reading:
    """Checks names and values against one release, and collects notes.

    :param release: the plugin's release; None if unknown.
    """

    release: Release | None = NEWEST
    #: Possible mistakes, for a release newer than the table.
    notes: list[str] = field(default_factory=list)

    def unknown(
        self, where: str, given: Iterable[object], known: Mapping[str, Release]
    ) -> list[str]:
        """Return the names that are not in the table, but may exist in a newer release.

        :raises InputError: the plugin's release does not have a name.
        """
        found = []
        for name in map(str, given):
            since = known.get(name)
            if since is not None:
                if not at_least(self.release, since):
                    raise InputError(
                        f"{where}: {name} came with the plugin's {release_text(since)}, and "
                        f"nvidia_device_plugin_version is {release_text(self.release or since)}",
                        next_step="The plugin would ignore it: leave it out, or take a newer "
                        "release.",
                    )
                continue
            near = nearest(name, known)
            guess = f"Is {near} meant?" if near else "Leave it out."
            if not is_newer(self.release):
                raise InputError(
                    f"{where}: does not know {name}; it knows {', '.join(known)}",
                    next_step=f"{guess} The plugin ignores what it does not know.",
                )
            self.note(
                f"{where}: {name} is not known here, where the table ends with "
                f"{release_text(NEWEST)}; it is handed on as it is.{f' {guess}' if near else ''}"
            )
            found.append(name)
        return found

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def value(self, where: str, row: Setting, value: Any) -> None:
        """Check the type of a value, and that it is one of the permitted values.

        :raises InputError: the value is invalid.
        """
        if not _is_kind(row.kind, value):
            article = "an" if row.kind[0] in "aeiou" else "a"
            raise InputError(f"{where}: is {value!r}, and has to be {article} {row.kind}")
        if row.kind == DURATION and value == "infinite" and not at_least(self.release, (0, 19)):
            raise InputError(f"{where}: infinite came with the plugin's v0.19")
        if row.values:
            for one in value if isinstance(value, (list, tuple)) else _split(row, value):
                self.choice(where, str(one), row.values)

    def choice(self, where: str, value: str, values: Mapping[str, Release]) -> None:
        """Check that a value is one of those that the release supports.

        :raises InputError: the value is invalid.
        """
        since = values.get(value)
        if since is not None and at_least(self.release, since):
            return
        if since is not None:
            raise InputError(f"{where}: {value} came with the plugin's {release_text(since)}")
        known = [one for one, first in values.items() if at_least(self.release, first)]
        says = f"{where}: is {value!r}, and has to be one of {', '.join(filter(None, known))}"
        if not is_newer(self.release):
            raise InputError(says)
        self.note(f"{says}, according to the table (up to {release_text(NEWEST)}).")


def nearest(name: str, known: Iterable[str], cutoff: float = _NEAR) -> str:
    """Return the most similar known name, ignoring case; empty if none is similar."""
    lower = {one.lower(): one for one in known}
    found = most_similar(name.lower(), lower, cutoff)
    return "" if found is None else lower[found]


def _split(row: Setting, value: Any) -> Sequence[Any]:
    # A string may be a comma-separated list, as in the plugin's own variable.
    return [one.strip() for one in value.split(",")] if row.kind == STRINGS else [value]


def _is_kind(kind: str, value: Any) -> bool:
    if kind == BOOLEAN:
        return isinstance(value, bool)
    if kind == STRINGS and isinstance(value, (list, tuple)):
        return all(isinstance(one, str) for one in value)
    if not isinstance(value, str):
        return False
    if kind == PATH:
        return value.startswith("/")
    if kind == DURATION:
        # A number without a unit would be nanoseconds.
        return value == "infinite" or bool(_DURATION.match(value))
    return True


def read_environment(given: Mapping[str, str], release: Release | None) -> list[str]:
    """Check the values of the plugin's environment variables; return remarks.

    Unknown variables are allowed: the container toolkit, Go and proxies use their own.

    :param given: variables of the container by name.
    :raises InputError: a variable duplicates an option of the role, or its value is invalid.
    """
    reading = Reading(release)
    for name, value in given.items():
        where = f"nvidia_device_plugin_environment[{name}]"
        row = _BY_VARIABLE.get(name)
        if name in _OURS or (row is not None and row.option):
            option = f"nvidia_device_plugin_{row.option}" if row else "nvidia_device_plugin_configs"
            raise InputError(
                f"{where}: would win over {option}, which volumes, rights and counts follow",
                next_step=f"Set {option} instead.",
            )
        if row is None:
            near = nearest(name, _BY_VARIABLE, _ALMOST)
            if near:
                reading.note(f"{where}: the plugin has no such variable. Is {near} meant?")
            continue
        reading.unknown("nvidia_device_plugin_environment", [name], {name: row.since})
        reading.value(where, row, _TRUTH.get(value, value) if row.kind == BOOLEAN else value)
    return reading.notes


def chart_values(given: Mapping[str, str], release: Release | None) -> dict[str, Any]:
    """Return the values of NVIDIA's chart for these variables of the plugin's container.

    :raises InputError: the chart has no value for a variable.
    """
    values: dict[str, Any] = {}
    without = []
    for name, value in given.items():
        row = _BY_VARIABLE.get(name)
        if row is None or row.chart is None or not at_least(release, row.chart[1]):
            without.append(name)
            continue
        *parents, last = row.chart[0].split(".")
        place = values
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = _TRUTH.get(value, False) if row.kind == BOOLEAN else value
    if without:
        fields = {
            f"flags.{row.path} in nvidia_device_plugin_configs"
            for row in map(_BY_VARIABLE.get, without)
            if row and row.path
        }
        other = f"Set {', '.join(sorted(fields))} instead, or use" if fields else "Use"
        raise InputError(
            "NVIDIA's chart has no value for variables of the plugin's container, and "
            f"nvidia_device_plugin_environment has {', '.join(without)}",
            next_step=f"{other} nvidia_device_plugin_method: manifest.",
        )
    return values
