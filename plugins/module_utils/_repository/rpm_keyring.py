# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan for rpm's keyring, which all repositories of the node share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError
from .._formats.openpgp import fingerprints
from .._host.command import Runner
from .._packages.rpm import query_all

# The key of the keyring's record on the node.
RING = "rpm_keyring"
_FORMAT = r"%{NAME}-%{VERSION}-%{RELEASE}\n%{DESCRIPTION}\n"
_KEY = re.compile(
    r"^(?P<package>gpg-pubkey-\S+)\n(?P<key>.*?)(?=^gpg-pubkey-|\Z)", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Ring:
    """The changes: fingerprints of keys to import, and names of rpm for keys to erase.

    ``record``: the new record. ``before`` and ``after``: the keys concerned.
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
    """Return rpm's name of each key, by fingerprint."""
    found = {}
    for match in _KEY.finditer(text):
        try:
            for fingerprint in fingerprints(match["key"].encode()):
                found[fingerprint] = match["package"]
        except InputError:
            # A version of keys that is not supported, and never requested.
            continue
    return found


def plan_ring(
    name: str, wanted: Sequence[str], ring: Mapping[str, str], record: Mapping[str, Any]
) -> Ring:
    """Return the changes that give the keyring the keys of one repository.

    :param wanted: fingerprints of the keys of repository ``name``; none: it is removed.
    :param ring: rpm's name of each installed key, by fingerprint.
    :param record: for each key, whether this collection imported it, and for which repositories.
    """
    # Keys of other repositories are left alone.
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
            *(f"rpm trusts the key {key} for a repository that is removed." for key in erase),
        ),
    )
