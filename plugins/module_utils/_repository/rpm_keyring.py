# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rpm's keyring, which is one for the whole node: from keys, wish and record to a plan."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError
from .._formats.openpgp import fingerprints
from .._host.command import Runner
from .._packages.rpm import query_all

# Under which name the node's record has what this collection did to the keyring.
RING = "rpm_keyring"
_FORMAT = r"%{NAME}-%{VERSION}-%{RELEASE}\n%{DESCRIPTION}\n"
_KEY = re.compile(
    r"^(?P<package>gpg-pubkey-\S+)\n(?P<key>.*?)(?=^gpg-pubkey-|\Z)", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Ring:
    """What has to be done: keys that are missing, and the names under which rpm has those that go.

    ``record`` is what the node has to remember then; ``before`` and ``after`` are the keys that
    this concerns.
    """

    add: tuple[str, ...] = ()
    erase: tuple[str, ...] = ()
    record: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.add or self.erase)


def read_ring(run: Runner) -> dict[str, str]:
    """Return the keys of the node, as :func:`parse_ring` does."""
    return parse_ring(query_all(run, ["--queryformat", _FORMAT, "gpg-pubkey"]))


def parse_ring(text: str) -> dict[str, str]:
    """Return the name that rpm gives to each key, by fingerprint."""
    found = {}
    for match in _KEY.finditer(text):
        try:
            for fingerprint in fingerprints(match["key"].encode()):
                found[fingerprint] = match["package"]
        except InputError:
            # A key of an age that nobody asks for.
            continue
    return found


def plan_ring(
    name: str, wanted: Sequence[str], ring: Mapping[str, str], record: Mapping[str, Any]
) -> Ring:
    """Return what makes the keyring have the keys of one repository.

    :param wanted: fingerprints of the keys that repository ``name`` is signed by; none: it goes.
    :param ring: the name that rpm gives to each key that is there.
    :param record: for each key, whether it was us who imported it, and for which repositories.
    """
    # Only what concerns this repository: others have theirs.
    users = {key: [str(user) for user in value["for"]] for key, value in record.items()}
    ours = {key for key, value in record.items() if value["ours"]}
    add = tuple(key for key in wanted if key not in ring)
    ours.update(add)
    for key in wanted:
        if name not in users.setdefault(key, []):
            users[key].append(name)
    gone = [key for key in users if name in users[key] and key not in wanted]
    for key in gone:
        users[key].remove(name)
    erase = [key for key in gone if not users[key] and key in ours and key in ring]
    concerned = sorted({*wanted, *erase})
    return Ring(
        add,
        tuple(ring[key] for key in erase),
        {key: {"ours": key in ours, "for": names} for key, names in users.items() if names},
        tuple(key for key in concerned if key in ring),
        tuple(key for key in concerned if key not in erase),
        (
            *(f"rpm does not trust the key {key}." for key in add),
            *(f"rpm trusts the key {key} for a repository that goes." for key in erase),
        ),
    )
