# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.link import (
    ABSENT,
    ALTERNATIVES,
    OTHER,
    SYMLINK,
    Link,
    parse_alternatives,
    revert_link,
    set_link,
)

# The commands themselves are run by test_cuda_toolkit.py.
PLACE = "/usr/local/cuda"


def test_alternatives_are_read():
    link = parse_alternatives(
        "Name: cuda\nLink: /usr/local/cuda\nStatus: manual\nBest: /usr/local/cuda-13.0\n"
        "Value: /usr/local/cuda-12.9\n\nAlternative: /usr/local/cuda-12.9\nPriority: 129\n\n"
        "Alternative: /usr/local/cuda-13.0\nPriority: 130\n"
    )
    assert link == Link(
        ALTERNATIVES, "/usr/local/cuda-12.9", True, ("/usr/local/cuda-12.9", "/usr/local/cuda-13.0")
    )
    assert parse_alternatives("error: no alternatives for cuda\n") is None


GROUP = Link(ALTERNATIVES, "/a", False, ("/a", "/b"))


@pytest.mark.parametrize(
    ("now", "commands"),
    [
        (Link(ABSENT), ["ln", "mv"]),
        (Link(SYMLINK, "/a"), ["ln", "mv"]),
        (Link(SYMLINK, "/b"), []),
        (GROUP, ["update-alternatives --set"]),
        (
            Link(ALTERNATIVES, "/a", False, ("/a",)),
            ["update-alternatives --install", "update-alternatives --set"],
        ),
        (Link(ALTERNATIVES, "/b", True, ("/b",)), []),
    ],
)
def test_how_the_link_is_set(now, commands):
    change = set_link(PLACE, now, "/b")
    found = [" ".join(argv[:2]) if "--" in argv[1] else argv[0] for argv in change.commands]
    assert found == commands
    assert change.after.target == "/b"
    assert change.changed is bool(commands)


def test_what_is_no_link_is_left_alone():
    with pytest.raises(KubegpuError, match="is not a link"):
        set_link(PLACE, Link(OTHER), "/b")


@pytest.mark.parametrize(
    ("before", "now", "target", "last"),
    [
        # It was not there: our own link goes, and the packages' with the packages.
        (Link(ABSENT), Link(SYMLINK, "/b"), "", "rm"),
        (Link(ABSENT), Link(ABSENT), "", None),
        (Link(ABSENT), GROUP, "/a", "--auto"),
        (Link(SYMLINK, "/x"), Link(SYMLINK, "/b"), "/x", "mv"),
        (Link(SYMLINK, "/x"), Link(ABSENT), "/x", "mv"),
        (Link(SYMLINK, "/x"), Link(ALTERNATIVES, "/b", True, ("/b",)), "/x", "mv"),
        (GROUP, Link(ALTERNATIVES, "/b", True, ("/a", "/b")), "/a", "--auto"),
        (Link(ALTERNATIVES, "/a", True, ("/a",)), Link(ALTERNATIVES, "/b", True, ("/a", "/b")),
         "/a", "--set"),
        # Somebody set it to something else since.
        (Link(ABSENT), Link(SYMLINK, "/other"), "/other", None),
        (GROUP, Link(ALTERNATIVES, "/c", True, ("/a", "/c")), "/c", None),
    ],
)  # fmt: skip
def test_how_the_link_is_given_back(before, now, target, last):
    added = ("/b",) if "/b" in now.choices else ()
    change = revert_link(PLACE, now, before=before, target="/b", added=added)
    assert change.after.target == target
    words_ = [word for argv in change.commands for word in argv]
    assert (last in words_) if last else not change.commands or "--remove" in words_
    assert bool(change.warning) == (now.target in ("/other", "/c"))


def test_a_link_that_we_never_set_stays():
    now = Link(SYMLINK, "/x")
    assert revert_link(PLACE, now, before=now, target="", added=()).commands == ()
