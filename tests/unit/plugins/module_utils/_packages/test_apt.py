# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shutil
import subprocess

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.apt import (
    available,
    edited,
    parse_database,
    parse_madison,
    read,
    simulate,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.types import BROKEN, INSTALLED

DATABASE = "\n".join(
    "\t".join(fields)
    for fields in [
        ("mta", "all", "1", "install", "installed", "ok", "libc6 (>= 2), a | b:any", "c", ""),
        ("b", "amd64", "2", "hold", "installed", "ok", "", "", ""),
        ("b", "i386", "1", "install", "installed", "ok", "", "", ""),
        ("real-c", "amd64", "3", "install", "half-configured", "ok", "", "", "c (= 3)"),
        ("gone", "amd64", "", "deinstall", "config-files", "ok", "", "", ""),
        ("bad", "amd64", "1", "install", "half-installed", "reinstreq", "", "", ""),
        ("waits", "amd64", "1", "install", "triggers-awaited", "ok", "", "", ""),
    ]
)


def test_database():
    database = parse_database(DATABASE + "\n a folded line\n", "amd64")
    packages = database.packages
    assert packages["b"].version == "2"
    assert packages["b"].held
    assert packages["real-c"].status == BROKEN
    assert packages["real-c"].detail == "half-configured"
    assert packages["bad"].detail == "half-installed, to be reinstalled"
    assert packages["waits"].status == INSTALLED
    assert not packages["gone"].installed
    assert packages["gone"].version is None
    assert database.needs["mta"] == ("libc6", "a", "b", "c", "real-c")


def test_madison_of_apt_2_6():
    text = (
        " nvidia-container-toolkit |   1.20.0-1 | http://mirror.example / Packages\n"
        " nvidia-container-toolkit |   1.19.0-1 | http://mirror.example / Packages\n"
        " nvidia-container-toolkit |   1.19.0-1 | http://other.example / Packages\n"
        "      bash |   5.2.15-2 | http://mirror.example bookworm/main Sources\n"
    )
    assert parse_madison(text) == {"nvidia-container-toolkit": ("1.20.0-1", "1.19.0-1")}


def test_a_node_without_dpkg_is_refused():
    with pytest.raises(InputError, match="does not use dpkg"):
        read(lambda *_a, **_k: Result(127, "", "dpkg-query: no such program"))


def test_edited_configuration_only():
    answers = {
        "a": "??5??????   c /etc/a.conf\n",
        "b": "??5??????     /usr/bin/b\n",
        "c": "missing     c /etc/c.conf\n",
        "d": "",
    }
    assert edited(lambda argv, timeout: Result(0, answers[argv[-1]], ""), list("abcd")) == ("a",)


needs_apt = pytest.mark.skipif(not shutil.which("apt-get"), reason="the machine has no apt")


def real(argv, timeout=60, environment=None):
    answer = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=timeout)
    return Result(answer.returncode, answer.stdout, answer.stderr)


@needs_apt
def test_the_real_dpkg_of_this_machine():
    database = read(real)
    assert database.packages["dpkg"].installed
    assert "tar" in database.needs["dpkg"]
    assert read(real, ["dpkg", "no-such-package"]).packages == {"dpkg": database.packages["dpkg"]}


@pytest.mark.full(why="the stage packages has the real apt")
@needs_apt
def test_the_real_apt_of_this_machine():
    assert available(real, []) == {}
    assert available(real, ["no-such-package"]) == {}
    simulation = simulate(real, {}, ["apt"])
    assert "apt" in simulation.removed or not simulation.answer.ok
