# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.rpm import (
    compare,
    edited,
    mentioned,
    newest_first,
    parse_installed,
    parse_needs,
    parse_superseded,
    read_database,
    read_installed,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.types import (
    BROKEN,
    INSTALLED,
    fits,
)

# Each is newer than the one before it; the words of rpm 4.18.0 (rpm.vercmp) on them are the same.
ORDER = ("1.0~rc1", "1.0", "1.0^git1", "1.0a", "1.0.1", "1.0.10", "1.9", "1.10", "2", "1:1.0")


@pytest.mark.parametrize(("left", "right"), list(itertools.product(range(len(ORDER)), repeat=2)))
def test_versions_are_compared_as_rpm_does(left, right):
    wanted = (left > right) - (left < right)
    assert compare(f"{ORDER[left]}-1", f"{ORDER[right]}-1") == wanted


def test_the_release_counts_last():
    found = newest_first(["1.2-1", "1.10-1", "1.10-2.el9", "1.10-1"])
    assert found == ("1.10-2.el9", "1.10-1", "1.2-1")


INSTALLED_TEXT = (
    "nvidia-open\tx86_64\t3:595.58.03-1.el9\t20\n"
    "libnvidia\tx86_64\t0:1.20.0-1\t20\n"
    "libnvidia\ti686\t0:1.19.0-1\t20\n"
    "kernel-devel\tx86_64\t0:5.14.0-503.el9\t10\n"
    "kernel-devel\tx86_64\t0:5.14.0-70.el9\t30\n"
    "half\tnoarch\t0:1.20.0-1\t30\n"
    "half\tnoarch\t0:1.19.0-1\t10\n"
    "gpg-pubkey\t(none)\t0:ecc96916-6b01c432\t1\n"
)


def test_installed_packages():
    packages = parse_installed(INSTALLED_TEXT, lambda name, version: version.startswith("3:"))
    assert packages["nvidia-open"].version == "3:595.58.03-1.el9" and packages["nvidia-open"].held
    assert fits("595.58.03*", packages["nvidia-open"].version)
    # Of the second architecture nothing is said; kernels stand side by side.
    assert (packages["libnvidia"].status, packages["libnvidia"].version) == (INSTALLED, "1.20.0-1")
    assert packages["kernel-devel"].version == "5.14.0-503.el9"
    # A transaction that was killed: the new one is there, the old one not gone.
    assert (packages["half"].status, packages["half"].version) == (BROKEN, "1.20.0-1")
    assert "1.19.0-1, 1.20.0-1" in packages["half"].detail
    assert "gpg-pubkey" not in packages


@pytest.mark.parametrize("read", [read_database, lambda run, held: read_installed(run, (), held)])
@pytest.mark.parametrize(("rc", "words"), [(1, "error: cannot open Packages database"), (124, "")])
def test_a_database_that_cannot_be_read_is_no_empty_one(read, rc, words):
    answer = Result(rc, "", words)
    with pytest.raises(KubegpuError, match=f"(?s)ended with {rc}: {words}.*Next step: .*rpm -qa"):
        read(lambda argv, timeout: answer, lambda *_a: False)


def test_what_a_killed_downgrade_leaves_is_what_was_there_first():
    text = "half\tnoarch\t30\thalf-1.19.0-1.noarch\nhalf\tnoarch\t10\thalf-1.20.0-1.noarch\n"
    text += "kernel\tx86_64\t1\tkernel-5-1.x86_64\nkernel\tx86_64\t2\tkernel-6-1.x86_64\n"
    assert parse_superseded(text) == ("half-1.20.0-1.noarch",)


def test_only_the_names_asked_for():
    answer = Result(0, INSTALLED_TEXT, "")
    asked = ["nvidia-*", "half-1.20.0"]
    names = read_installed(lambda argv, timeout: answer, asked, lambda *_a: False)
    assert list(names) == ["nvidia-open"]


def test_needs_by_name_by_what_is_provided_and_by_file():
    text = (
        "P\ttools\ttools\nR\ttools\tlib.so.1()(64bit)\nR\ttools\t/usr/bin/sh\n"
        "R\ttools\t(langpack if glibc)\nP\tlib\tlib.so.1()(64bit)\nP\tlangpack\tlangpack\n"
        "R\ttools\ttools\nR\tlib\trpmlib(FileDigests)\n"
    )
    needs = parse_needs(text, "bash\t/usr/bin/sh\nbash\t/usr/bin/bash\n")
    assert set(needs["tools"]) == {"lib", "bash", "langpack"}
    assert needs["lib"] == ()


def test_edited_configuration():
    said = {
        "a": "..5....T.  c /etc/a.conf\n",
        "b": ".......T.  c /etc/b.conf\n",
        "c": "S.5....T.    /usr/lib/c\n",
        "d": "missing   c /etc/d.conf\n",
    }
    assert edited(lambda argv, timeout: Result(1, said[argv[-1]], ""), list(said)) == ("a",)


def test_names_in_what_a_manager_says():
    words = mentioned(Result(1, "", "package libnvidia-x-3:1.20.0-1.el9.x86_64 requires other = 1"))
    assert {"libnvidia-x", "other"} <= set(words)
