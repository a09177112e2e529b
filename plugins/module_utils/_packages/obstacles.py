# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of the node that keep a package from being installed which a repository has: pins of
apt, ``exclude`` and module streams of dnf, locks and holds. Pure.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_MOST = 5


@dataclass(frozen=True)
class Obstacle:
    """What keeps the package ``subject`` from being installed.

    :param reason: follows the subject, such as "is held in version 1".
    """

    subject: str
    reason: str
    next_step: str


def joined(obstacles: Iterable[Obstacle]) -> tuple[str, str]:
    """Return cause and next step; packages with the same reason are named together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in obstacles:
        groups.setdefault((one.reason, one.next_step), []).append(one.subject)
    causes = []
    for (reason, _next_step), subjects in groups.items():
        names = list(dict.fromkeys(subjects))
        more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        causes.append(f"{', '.join(names[:_MOST])}{more}: {reason}.")
    steps = dict.fromkeys(next_step for _reason, next_step in groups)
    return " ".join(causes), " ".join(steps)


# -- apt


@dataclass(frozen=True)
class Policy:
    """What ``apt-cache policy`` says of a package: the priority of each version."""

    candidate: str | None
    priorities: Mapping[str, int]


@dataclass(frozen=True)
class Pin:
    """A paragraph of apt's preferences."""

    path: str
    packages: str
    pin: str
    priority: int

    def covers(self, name: str) -> bool:
        for word in self.packages.split():
            pattern = word.partition(":")[0]
            if word.startswith("/") and word.endswith("/"):
                try:
                    if re.search(word[1:-1], name):
                        return True
                except re.error:
                    continue
            elif not word.startswith("src:") and fnmatch.fnmatchcase(name, pattern):
                return True
        return False

    def shown(self) -> str:
        return f"{self.path} (Package: {self.packages}; Pin: {self.pin})"


_POLICY = re.compile(r"^(?P<name>[a-z0-9][a-z0-9+.-]+):\n(?P<rest>(?:^ .*\n?)*)", re.MULTILINE)
_CANDIDATE = re.compile(r"^  Candidate: (?P<version>\S+)$", re.MULTILINE)
_PRIORITY = re.compile(r"^ (?:\*\*\*|   ) (?P<version>\S+) (?P<priority>-?\d+)$", re.MULTILINE)


def parse_policy(text: str) -> dict[str, Policy]:
    """Return what ``apt-cache policy NAME ...`` printed, by name; versions are the newest first."""
    found = {}
    for match in _POLICY.finditer(text):
        candidate = _CANDIDATE.search(match["rest"])
        version = candidate["version"] if candidate else "(none)"
        found[match["name"]] = Policy(
            None if version == "(none)" else version,
            {one["version"]: int(one["priority"]) for one in _PRIORITY.finditer(match["rest"])},
        )
    return found


def parse_preferences(path: str, text: str) -> tuple[Pin, ...]:
    """Return the pins of a file of apt's preferences."""
    found = []
    without_comments = re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)
    for paragraph in re.split(r"\n[ \t]*\n", without_comments):
        unfolded = re.sub(r"\n[ \t]+", " ", paragraph)
        fields = {
            name.strip().lower(): value.strip()
            for name, colon, value in (line.partition(":") for line in unfolded.splitlines())
            if colon
        }
        priority = fields.get("pin-priority", "")
        if fields.get("package") and re.match(r"[+-]?\d+\Z", priority):
            found.append(Pin(path, fields["package"], fields.get("pin", ""), int(priority)))
    return tuple(found)


def pinned(
    policies: Mapping[str, Policy], pins: Sequence[Pin], wanted: Mapping[str, str | None]
) -> tuple[Obstacle, ...]:
    """Return the packages whose pins keep a version of a repository from being installed.

    :param wanted: the requested version of some of them (None: any).
    """
    found = []
    for name, policy in policies.items():
        version = wanted.get(name) or next(iter(policy.priorities), None)
        priority = policy.priorities.get(version or "")
        if version is None or priority is None:
            continue
        covering = [pin for pin in pins if pin.covers(name)]
        where = ", ".join(
            dict.fromkeys(pin.shown() for pin in covering if pin.priority == priority)
        )
        next_step = (
            f"Change or remove that pin, then run again; apt-cache policy {name} shows the "
            "priorities."
        )
        if priority < 0:
            reason = f"version {version} is in a repository of this node, with priority {priority}"
            reason += f" by {where}" if where else " by apt's preferences"
            found.append(Obstacle(name, reason, next_step))
        elif policy.candidate and policy.candidate != version and name not in wanted:
            prefers = [
                pin for pin in covering if pin.priority == policy.priorities.get(policy.candidate)
            ]
            where = ", ".join(dict.fromkeys(pin.shown() for pin in prefers))
            if where:
                reason = (
                    f"a repository of this node has version {version}, and apt takes "
                    f"{policy.candidate} by {where}"
                )
                found.append(Obstacle(name, reason, next_step))
    return tuple(found)


# -- dnf and zypper


def parse_excludes(text: str) -> tuple[tuple[str, str], ...]:
    """Return file and pattern of each exclusion, from lines of ``grep -H``: FILE:exclude=A,B."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        match = re.match(r"(?P<path>/[^:]+):\s*exclude(?:pkgs)?\s*=\s*(?P<patterns>.*)", line)
        if match:
            words = re.split(r"[\s,]+", match["patterns"].strip())
            found.extend((match["path"], word) for word in words if word)
    return tuple(found)


def excluded(
    hidden: Mapping[str, Sequence[str]], excludes: Iterable[tuple[str, str]]
) -> tuple[Obstacle, ...]:
    """Return the packages that a setting ``exclude`` hides.

    :param hidden: versions that are offered without exclusions, and not with them.
    """
    found = []
    rules = tuple(excludes)
    for name, versions in hidden.items():
        where = dict.fromkeys(
            f"{path} ({pattern})"
            for path, pattern in rules
            if any(
                fnmatch.fnmatchcase(text, pattern)
                for text in (name, f"{name}-{versions[0]}", f"{name}.x86_64")
            )
        )
        reason = f"version {versions[0]} is in a repository of this node, and exclude hides it"
        if where:
            reason += f": {', '.join(where)}"
        step = "Take the package out of exclude or excludepkgs of dnf.conf or of its repository"
        found.append(Obstacle(name, reason, f"{step}, then run again."))
    return tuple(found)


def of_other_stream(
    hidden: Mapping[str, Sequence[str]], streams: Mapping[str, Sequence[str]]
) -> tuple[Obstacle, ...]:
    """Return the packages that only streams of modules have which are not enabled.

    :param streams: the streams that have a package, by its name.
    """
    found = []
    for name, versions in hidden.items():
        reason = f"version {versions[0]} is in a repository of this node, and dnf's modules hide it"
        having = streams.get(name, ())
        if having:
            reason += f": it is in the module stream {', '.join(having)}"
        step = "Enable that stream (dnf module list shows those that are enabled), or ask for a "
        found.append(Obstacle(name, reason, f"{step}version of the enabled one."))
    return tuple(found)


def parse_providing_streams(text: str) -> tuple[str, ...]:
    """Return the streams that ``dnf module provides NAME`` names."""
    found = re.findall(r"^Module\s*: ([^:\s]+:[^:\s]+):", text, re.MULTILINE)
    return tuple(dict.fromkeys(found))


def locked_names(names: Iterable[str], path: str, command: str) -> tuple[Obstacle, ...]:
    """Return the packages that a lock of another owner holds.

    :param command: shows the locks.
    """
    step = f"Take that lock out ({command} shows it), then run again."
    return tuple(Obstacle(name, f"a lock in {path} holds it", step) for name in names)
