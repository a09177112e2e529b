# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils._mig.data import table_profiles
from plugins.module_utils._mig.layout import Instance, counted
from plugins.module_utils._mig.placement import missing, place
from tests.tools.tiers import is_full

A100 = table_profiles("20b0")
DEVICES = ("20b0", "2330", "2321", "2335", "20b7", "2901", "2bb5")


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"1g.5gb": 7}, "7x 1g.5gb at 0, 1, 2, 3, 4, 5 and 6"),
        ({"3g.20gb": 2}, "2x 3g.20gb at 0 and 4"),
        # In the order of the request nvidia-smi has no place for the last one.
        (
            {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1},
            "2g.10gb at 0, 2x 1g.5gb at 2 and 3, 3g.20gb at 4",
        ),
        ({"4g.20gb": 1, "3g.20gb": 1}, "4g.20gb at 0, 3g.20gb at 4"),
        ({"7g.40gb": 1}, "7g.40gb at 0"),
        ({"1g.10gb": 4}, "4x 1g.10gb at 0, 2, 4 and 6"),
        ({}, ""),
    ],
)
def test_layouts_of_an_a100(counts, expected):
    assert counted(place(A100, counts)) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"1g.24gb": 4}, "4x 1g.24gb at 0, 3, 6 and 9"),
        ({"2g.48gb": 1, "1g.24gb-me": 2}, "2g.48gb at 0, 2x 1g.24gb-me at 6 and 9"),
        ({"4g.96gb": 1}, "4g.96gb at 0"),
    ],
)
def test_layouts_of_an_rtx_pro_6000(counts, expected):
    assert counted(place(table_profiles("2bb5"), counts)) == expected


def test_what_does_not_fit_leaves_the_nearest_layout():
    layout = place(A100, {"3g.20gb": 2, "1g.5gb": 1})
    assert counted(layout) == "2x 3g.20gb at 0 and 4"
    assert missing({"3g.20gb": 2, "1g.5gb": 1}, layout) == {"1g.5gb": 1}


def test_an_instance_stays_where_it_is():
    there = Instance(3, 1, "1g.5gb")
    layout = place(A100, {"1g.5gb": 1, "3g.20gb": 1}, [there])
    assert there in layout
    assert counted(layout) == "1g.5gb at 3, 3g.20gb at 4"


def test_an_instance_in_use_stays_rather_than_two_others():
    existing = [Instance(start, 1, "1g.5gb") for start in (0, 1, 4)]
    layout = place(A100, {"1g.5gb": 2, "3g.20gb": 1}, existing, [existing[2]])
    assert existing[2] in layout
    assert Instance(0, 4, "3g.20gb") in layout


def test_a_divided_instance_is_made_again():
    divided = Instance(4, 4, "3g.20gb", ("1c.3g.20gb",) * 3)
    assert place(A100, {"3g.20gb": 1}, [divided]) == (Instance(0, 4, "3g.20gb"),)


def test_media_engines_are_given_once():
    profiles = table_profiles("2bb5")
    assert missing({"1g.24gb+me": 2}, place(profiles, {"1g.24gb+me": 2}))
    both = {"1g.24gb+me": 1, "1g.24gb+me.all": 1}
    assert missing(both, place(profiles, both))
    with_others = {"1g.24gb+me.all": 1, "1g.24gb-me": 3}
    assert not missing(with_others, place(profiles, with_others))
    assert missing(
        {"1g.24gb+me.all": 1, "1g.24gb": 1}, place(profiles, {"1g.24gb+me.all": 1, "1g.24gb": 1})
    )


@st.composite
def cards_and_requests(draw):
    profiles = table_profiles(draw(st.sampled_from(DEVICES)))
    names = [one.name for one in profiles]
    counts = draw(st.dictionaries(st.sampled_from(names), st.integers(0, 8), max_size=4))
    earlier = draw(st.dictionaries(st.sampled_from(names), st.integers(0, 8), max_size=4))
    existing = place(profiles, earlier)
    existing = draw(st.lists(st.sampled_from(existing), unique=True)) if existing else []
    return profiles, counts, existing


def slices(instance):
    return set(range(instance.start, instance.start + instance.size))


@given(cards_and_requests())
@settings(max_examples=1000 if is_full() else 50, deadline=None)
def test_layouts_never_overlap_and_have_places_of_the_card(case):
    profiles, counts, existing = case
    by_name = {one.name: one for one in profiles}
    layout = place(profiles, counts, existing)
    taken = set()
    for one in layout:
        assert not slices(one) & taken
        taken |= slices(one)
        assert one.start in by_name[one.profile].starts
        assert one.size == by_name[one.profile].size
    for name, count in counts.items():
        placed = sum(one.profile == name for one in layout)
        assert placed <= min(count, by_name[name].count)
    # Whether it fits does not depend on what is there.
    assert bool(missing(counts, layout)) == bool(missing(counts, place(profiles, counts)))


@given(cards_and_requests())
@settings(max_examples=500 if is_full() else 25, deadline=None)
def test_a_layout_is_kept_when_asked_for_again(case):
    profiles, counts, existing = case
    layout = place(profiles, counts, existing)
    assert place(profiles, counts, layout) == layout


@given(cards_and_requests())
@settings(max_examples=300 if is_full() else 12, deadline=None)
def test_no_layout_keeps_more(case):
    profiles, counts, existing = case
    layout = place(profiles, counts, existing)
    if missing(counts, layout) or sum(counts.values()) > 4:
        return
    assert len(set(layout) & set(existing)) == _most_kept(profiles, counts, existing)


def _most_kept(profiles, counts, existing):
    """Return the most instances that any layout keeps, by trying all of them."""
    by_name = {one.name: one for one in profiles}
    wanted = [profile for name, count in counts.items() for profile in [by_name[name]] * count]

    def attempt(index, chosen):
        if index == len(wanted):
            good = not missing(counts, place(profiles, counts, chosen))
            return len(set(chosen) & set(existing)) if good else -1
        results = [-1]
        for start in wanted[index].starts:
            one = Instance(start, wanted[index].size, wanted[index].name)
            if not any(slices(one) & slices(other) for other in chosen):
                results.append(attempt(index + 1, [*chosen, one]))
        return max(results)

    return attempt(0, [])
