# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layout of a GPU: its mode and GPU instances. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, order=True)
class Instance:
    """A GPU instance.

    ``compute`` are the profiles of its compute instances; None is one that has all of it, which is
    what this collection makes. ``number`` is the ID of an existing instance.
    """

    start: int
    size: int
    profile: str
    compute: tuple[str, ...] | None = None
    number: int | None = field(default=None, compare=False)

    @property
    def place(self) -> str:
        """The instance as ``nvidia-smi mig -cgi`` takes it: ``1g.5gb:4``."""
        return f"{self.profile}:{self.start}"

    def to_json(self) -> dict[str, Any]:
        compute = None if self.compute is None else list(self.compute)
        return {
            "start": self.start,
            "size": self.size,
            "profile": self.profile,
            "compute": compute,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Instance:
        compute = data["compute"]
        return cls(
            data["start"],
            data["size"],
            data["profile"],
            None if compute is None else tuple(compute),
        )


@dataclass(frozen=True)
class Layout:
    """Mode and instances of a GPU, as they are or as they should be."""

    enabled: bool
    instances: tuple[Instance, ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """The profiles of the MIG devices, which are the compute instances."""
        if not self.enabled:
            return ()
        return tuple(
            name
            for one in self.instances
            for name in ((one.profile,) if one.compute is None else one.compute)
        )

    def describe(self) -> str:
        """Return the layout in one line, such as ``2x 1g.5gb at 0 and 1, 3g.20gb at 4``."""
        if not self.enabled:
            return "MIG disabled"
        return counted(self.instances) if self.instances else "MIG enabled, no instances"

    def lines(self) -> str:
        """Return the layout with one line for each instance, for a diff."""
        if not self.enabled or not self.instances:
            return f"{self.describe()}\n"
        return "".join(f"{counted((one,))}\n" for one in sorted(self.instances))

    def to_json(self) -> dict[str, Any]:
        return {
            "enabled": self.enabled,
            "instances": [one.to_json() for one in self.instances],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Layout:
        return cls(data["enabled"], tuple(Instance.from_json(one) for one in data["instances"]))


def counted(instances: Iterable[Instance]) -> str:
    """Return instances by profile, such as ``2x 1g.5gb at 0 and 1, 3g.20gb at 4``."""
    starts: dict[str, list[str]] = {}
    for one in sorted(instances):
        split = "" if one.compute is None else f" ({', '.join(one.compute) or 'not usable'})"
        starts.setdefault(f"{one.profile}{split}", []).append(str(one.start))
    return ", ".join(
        f"{f'{len(at)}x ' if len(at) > 1 else ''}{name} at "
        + (f"{', '.join(at[:-1])} and {at[-1]}" if len(at) > 1 else at[0])
        for name, at in starts.items()
    )
