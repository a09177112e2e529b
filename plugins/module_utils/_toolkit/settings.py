# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of the container toolkit's ``config.toml`` by release: names, types, values. Pure.

Source: NVIDIA/nvidia-container-toolkit, the tags v1.10.0 to v1.20.0: ``internal/config`` (from
1.19.0 on ``api/config/v1``), ``internal/info/auto.go``, ``internal/runtime``, ``internal/oci``. The
toolkit ignores a name that it does not know, and stops at a value of another type: with that, no
container of NVIDIA's runtime starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core.names import most_similar
from .._core.versions import package_numbers

Release = tuple[int, ...]

# The newest release that the table covers. A newer one may have more settings.
NEWEST: Release = (1, 20)
_WORDS = {bool: "true or false", str: "text", list: "a list of text"}
_LDCONFIG = "nvidia-container-cli.ldconfig"
_CONTAINER_LDCONFIG = "features.allow-ldconfig-from-container"
_LOG_LEVEL = "nvidia-container-runtime.log-level"
_RUNTIMES = "nvidia-container-runtime.runtimes"
_CAPABILITIES = "supported-driver-capabilities"
_KNOWN_CAPABILITIES = ("compat32", "compute", "display", "graphics", "ngx", "utility", "video")


@dataclass(frozen=True)
class Setting:
    """One setting: ``since`` is the first release that has it, ``until`` the first without it.

    :param values: the accepted texts, each with the first release that accepts it; empty: any.
    :param stops: whether the toolkit fails on another text. Otherwise it uses a default.
    """

    kind: type
    since: Release = ()
    until: Release = ()
    values: Mapping[str, Release] = field(default_factory=dict)
    stops: bool = True

    def known_to(self, release: Release) -> bool:
        """Return whether a release has the setting; an empty release is any."""
        if not release:
            return True
        return release >= self.since and not (self.until and release >= self.until)


@dataclass(frozen=True)
class Fault:
    """A value that the toolkit does not accept. ``stops``: no container starts with it."""

    key: str
    message: str
    stops: bool = True


def _any_of(*values: str) -> dict[str, Release]:
    return dict.fromkeys(values, ())


SETTINGS: Mapping[str, Setting] = {
    "disable-require": Setting(bool),
    "swarm-resource": Setting(str),
    "accept-nvidia-visible-devices-envvar-when-unprivileged": Setting(bool),
    "accept-nvidia-visible-devices-as-volume-mounts": Setting(bool),
    _CAPABILITIES: Setting(str),
    "nvidia-container-cli.root": Setting(str),
    "nvidia-container-cli.path": Setting(str),
    "nvidia-container-cli.environment": Setting(list),
    "nvidia-container-cli.debug": Setting(str),
    "nvidia-container-cli.ldcache": Setting(str),
    "nvidia-container-cli.load-kmods": Setting(bool),
    "nvidia-container-cli.no-pivot": Setting(bool),
    "nvidia-container-cli.no-cgroups": Setting(bool),
    "nvidia-container-cli.user": Setting(str),
    _LDCONFIG: Setting(str),
    "nvidia-container-runtime.debug": Setting(str),
    _LOG_LEVEL: Setting(
        str,
        values=_any_of("panic", "fatal", "error", "warn", "warning", "info", "debug", "trace"),
        stops=False,
    ),
    _RUNTIMES: Setting(list),
    "nvidia-container-runtime.mode": Setting(
        str,
        values={**_any_of("auto", "legacy", "csv"), "cdi": (1, 11), "jit-cdi": (1, 18)},
    ),
    "nvidia-container-runtime.modes.csv.mount-spec-path": Setting(str),
    "nvidia-container-runtime.modes.csv.compat-container-root": Setting(str, (1, 19)),
    "nvidia-container-runtime.modes.cdi.spec-dirs": Setting(list, (1, 11)),
    "nvidia-container-runtime.modes.cdi.default-kind": Setting(str, (1, 13)),
    "nvidia-container-runtime.modes.cdi.annotation-prefixes": Setting(list, (1, 13)),
    "nvidia-container-runtime.modes.jit-cdi.nvcdi-feature-flags": Setting(list, (1, 18, 1)),
    "nvidia-container-runtime.modes.jit-cdi.nvcdi-disable-hooks": Setting(list, (1, 20)),
    "nvidia-container-runtime.modes.legacy.cuda-compat-mode": Setting(
        str, (1, 17, 7), values=_any_of("disabled", "hook", "ldconfig", "mount"), stops=False
    ),
    "nvidia-container-runtime-hook.path": Setting(str, (1, 13)),
    "nvidia-container-runtime-hook.skip-mode-detection": Setting(bool, (1, 13)),
    "nvidia-ctk.path": Setting(str),
    "features.gds": Setting(bool, (1, 15), (1, 17)),
    "features.mofed": Setting(bool, (1, 15), (1, 17)),
    "features.nvswitch": Setting(bool, (1, 15), (1, 17)),
    "features.gdrcopy": Setting(bool, (1, 15), (1, 17)),
    "features.disable-imex-channel-creation": Setting(bool, (1, 17)),
    _CONTAINER_LDCONFIG: Setting(bool, (1, 17, 3)),
    "features.allow-cuda-compat-libs-from-container": Setting(bool, (1, 17, 4)),
    "features.disable-cuda-compat-lib-hook": Setting(bool, (1, 17, 5)),
    "features.ignore-imex-channel-requests": Setting(bool, (1, 17, 5)),
    "features.allow-unknown-oci-spec-fields": Setting(bool, (1, 19)),
    "features.no-additional-gids-for-device-nodes": Setting(bool, (1, 19)),
}
_SECTIONS = frozenset(
    key.rsplit(".", count)[0] for key in SETTINGS for count in range(1, key.count(".") + 1)
)


def release_of(version: str | None) -> Release:
    """Return the release of a package's version: (1, 20, 0) for ``1.20.0-1``; empty for none."""
    return package_numbers(version)[:3] if version else ()


def faults(
    settings: Mapping[str, Any], release: Release = (), present: Mapping[str, Any] | None = None
) -> list[Fault]:
    """Return the wrong types and values of known settings.

    :param settings: value by name, as ``section.key``.
    :param release: the toolkit's; empty: unknown, and what any release accepts is right.
    :param present: the other settings of the file.
    """
    found = []
    for key, value in settings.items():
        message, stops = "", True
        setting = SETTINGS.get(key)
        if key in _SECTIONS:
            message = f"{key} is a section. Give each of its settings as {key}.name"
        elif setting is not None and not _has_type(value, setting.kind):
            message = f"{key} has to be {_WORDS[setting.kind]}, and is {_shown(value)}"
        elif setting is not None:
            message = _wrong_value(key, setting, value, release, {**(present or {}), **settings})
            stops = setting.stops
        if message:
            found.append(Fault(key, message, stops))
    return found


def unknown(settings: Mapping[str, Any], release: Release = ()) -> list[str]:
    """Return a message for each name that the release does not know and therefore ignores."""
    return [
        _unknown(key, release)
        for key in settings
        if key not in _SECTIONS and not (key in SETTINGS and SETTINGS[key].known_to(release))
    ]


def _unknown(key: str, release: Release) -> str:
    name = f"toolkit {_dotted(release)}" if release else "the toolkit"
    setting = SETTINGS.get(key)
    if setting is not None:
        newer = release < setting.since
        when = f"from {_dotted(setting.since)} on" if newer else f"before {_dotted(setting.until)}"
        return f"{key} is a setting of the toolkit {when}; {name} ignores it."
    names = [name for name, known in SETTINGS.items() if known.known_to(release)]
    near = most_similar(key, names, 0.6) or next(
        (name for name in names if name.rpartition(".")[2] == key.rpartition(".")[2]), None
    )
    guess = f" The nearest that is known is {near}." if near else ""
    if release[:2] > NEWEST:
        return (
            f"{key} is not known here, where the settings up to toolkit {_dotted(NEWEST)} are "
            f"known.{guess}"
        )
    return f"{key} is not a setting of {name}, which ignores it.{guess}"


def _has_type(value: Any, kind: type) -> bool:
    if kind is list:
        return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)
    return isinstance(value, kind)


def _wrong_value(
    key: str, setting: Setting, value: Any, release: Release, together: Mapping[str, Any]
) -> str:
    """Return what is wrong with a value of the right type."""
    taken = list(_taken(setting, release))
    text = value.lower() if key == _LOG_LEVEL else value
    # A release newer than the table may accept more.
    if taken and text not in taken and release[:2] <= NEWEST:
        return f"{key} has to be one of {', '.join(taken)}, and is {_shown(value)}"
    if key == _RUNTIMES and not value:
        return f"{key} has to name at least one runtime"
    if key == _CAPABILITIES and str(value) != "all":
        names = [name.strip() for name in str(value).split(",")]
        wrong = [name for name in names if name and name not in _KNOWN_CAPABILITIES]
        if wrong and release[:2] <= NEWEST:
            known = ", ".join(_KNOWN_CAPABILITIES)
            return f"{key} has to be all or some of {known}, and has {', '.join(wrong)}"
    if (
        key == _LDCONFIG
        and not str(value).startswith("@")
        and (not release or release >= SETTINGS[_CONTAINER_LDCONFIG].since)
        and together.get(_CONTAINER_LDCONFIG) is not True
    ):
        return (
            f"{key} has to begin with @, which means a path of the node (such as "
            f"@/sbin/ldconfig), and is {_shown(value)}; {_CONTAINER_LDCONFIG} allows another one"
        )
    return ""


def _taken(setting: Setting, release: Release) -> Iterator[str]:
    return (value for value, since in setting.values.items() if not release or release >= since)


def _dotted(release: Release) -> str:
    return ".".join(str(number) for number in release)


def _shown(value: Any) -> str:
    return f"the text {value!r}" if isinstance(value, str) else repr(value)
