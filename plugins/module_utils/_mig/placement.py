# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The placement of MIG instances on a card. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache

from .layout import Instance
from .types import Profile

# To be kept: in use, or merely there. Placed: memory slices, then instances.
_Score = tuple[int, int, int, int]
_NOTHING: _Score = (0, 0, 0, 0)
# Of the media engines: some are taken, the one set for +me is taken, all are taken.
_SOME, _SET, _ALL = 1, 2, 4


def place(
    profiles: Sequence[Profile],
    counts: Mapping[str, int],
    existing: Collection[Instance] = (),
    used: Collection[Instance] = (),
) -> tuple[Instance, ...]:
    """Return the best layout: as much of the request as fits, with existing instances kept.

    The layout has the whole request if any layout has. Of those, the one that keeps most of
    ``used`` and then of ``existing`` is returned; of equal ones, large instances come first, and
    each has the lowest start.

    :param profiles: the profiles of the card.
    :param counts: how many instances of each profile are requested; each is one of the card's.
    :param existing: the instances that could be kept. They cannot be moved.
    :param used: those of them that programs use.
    """
    by_name = {profile.name: profile for profile in profiles}
    kept = {(one.profile, one.start) for one in existing if one.compute is None}
    busy = {(one.profile, one.start) for one in used}
    # Of one profile the starts ascend, so that equal layouts are tried once.
    order = sorted(
        (by_name[name] for name, count in counts.items() if count),
        key=lambda one: (-one.size, -one.slices, one.name),
    )

    @cache
    def best(
        index: int, left: int, first: int, taken: int, engines: int
    ) -> tuple[_Score, tuple[tuple[str, int], ...]]:
        if index == len(order):
            return _NOTHING, ()
        profile = order[index]
        following = index + 1
        if following < len(order):
            next_left = min(counts[order[following].name], order[following].count)
        else:
            next_left = 0
        # Without a further instance of this profile.
        result = best(following, next_left, 0, taken, engines)
        if not left:
            return result
        after = _engines(profile, profiles, engines)
        if after is None:
            return result
        for start in sorted(profile.starts):
            mask = ((1 << profile.size) - 1) << start
            if start < first or mask & taken:
                continue
            key = (profile.name, start)
            gain = (profile.size, 1, int(key in busy and key in kept), int(key in kept))
            score, rest = best(index, left - 1, start + 1, taken | mask, after)
            total = _sum(gain, score)
            # Equal scores: the first one found has the lowest start.
            if total > result[0]:
                result = total, (key, *rest)
        return result

    if not order:
        return ()
    chosen = best(0, min(counts[order[0].name], order[0].count), 0, 0, 0)[1]
    return tuple(sorted(Instance(start, by_name[name].size, name) for name, start in chosen))


def missing(counts: Mapping[str, int], layout: Collection[Instance]) -> dict[str, int]:
    """Return how many of the requested instances the layout lacks, by profile."""
    placed = [one.profile for one in layout]
    lacking = {name: count - placed.count(name) for name, count in counts.items()}
    return {name: count for name, count in lacking.items() if count > 0}


def _sum(one: _Score, other: _Score) -> _Score:
    return (one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3])


def _engines(profile: Profile, profiles: Sequence[Profile], taken: int) -> int | None:
    """Return the taken media engines with one more instance; None if it does not get its own.

    All profiles with ``+me`` share one set. Where a card has ``+me.all``, a profile without
    ``-me`` has some of the engines, too.
    """
    attributes = profile.attributes
    if attributes == "+me.all":
        return None if taken else _ALL
    shared = any(one.attributes == "+me.all" for one in profiles)
    if attributes.startswith("-me") or (not shared and attributes != "+me"):
        return taken
    if taken & _ALL or (attributes == "+me" and taken & _SET):
        return None
    return taken | _SOME | (_SET if attributes == "+me" else 0)
