# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository.rpm import (
    rpm_format,
    sections,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository.types import Request, State

URL = "https://nvidia.example/stable/rpm"
NVIDIA = """\
# by hand
[nvidia-container-toolkit]
name=nvidia-container-toolkit
baseurl=https://nvidia.example/stable/rpm/$basearch
repo_gpgcheck=1
enabled=1
gpgkey=https://nvidia.example/gpgkey
       file:///etc/other

# the experimental one
[experimental]
baseurl=https://nvidia.example/experimental/rpm/$basearch
enabled = 0
"""
DNF, ZYPPER = rpm_format("dnf"), rpm_format("zypper")


def request(form=DNF, **options):
    given = {"name": "kubegpu-x", "format": form, "url": URL, "suite": "$basearch"}
    return Request(**{**given, **options})


def test_sections():
    first, second = sections(NVIDIA)
    assert (first.name, first.start, first.end) == ("nvidia-container-toolkit", 1, 9)
    assert first.values("gpgkey") == ("https://nvidia.example/gpgkey", "file:///etc/other")
    assert first.enabled and not second.enabled
    assert not list(sections("[main]\ngpgcheck=1\n"))


def test_entry():
    text = DNF.sources(request(check_packages=False), State({}))
    assert text.splitlines()[1:] == [
        "[kubegpu-x]",
        "name=kubegpu-x",
        f"baseurl={URL}/$basearch",
        "enabled=1",
        "gpgcheck=0",
        "repo_gpgcheck=1",
        "gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-kubegpu-x",
    ]
    assert DNF.sources_file("x") == "/etc/yum.repos.d/x.repo"
    assert ZYPPER.sources_file("x") == "/etc/zypp/repos.d/x.repo"
    assert f"baseurl={URL}\n" in DNF.sources(request(suite="/"), State({}))


def test_proxy_and_authority():
    options = {"https_proxy": "http://proxy:3128", "http_proxy": "http://no", "ca_file": "/etc/ca"}
    text = DNF.sources(request(**options), State({}))
    assert text.endswith("proxy=http://proxy:3128\nsslcacert=/etc/ca\n")
    direct = DNF.sources(request(no_proxy=".example", **options), State({}))
    assert "proxy=_none_\n" in direct
    assert DNF.warnings(request(**options)) == ()


def test_zypper_takes_proxy_and_authority_from_the_system():
    options = {"https_proxy": "http://user:word@proxy:3128", "ca_file": "/etc/ca"}
    asked = request(ZYPPER, **options)
    ZYPPER.check(asked)
    assert ZYPPER.sources(asked, State({})) == ZYPPER.sources(request(ZYPPER), State({}))
    proxy, authority = ZYPPER.warnings(asked)
    assert "Next step: see that it is set in /etc/sysconfig/proxy" in proxy and "word" not in proxy
    assert "/etc/ca" in authority and "update-ca-certificates" in authority
    assert ZYPPER.warnings(request(ZYPPER)) == ()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"check_packages": False, "check_metadata": False}, "Neither"),
        ({"components": ("main",)}, "components"),
        ({"keyring": "/etc/key"}, "keyring"),
    ],
)
def test_refusals(options, words):
    with pytest.raises(InputError, match=words):
        DNF.check(request(**options))


def test_switched_off_and_on_again():
    text, gone = DNF.disable(NVIDIA, "a.repo", "x", [f"{URL}/x86_64"], "x86_64")
    assert gone == (f"[nvidia-container-toolkit] {URL}/$basearch",)
    assert not next(sections(text)).enabled
    assert text.count("enabled=0") == 1 and "#kubegpu:x:- enabled=1\n" in text
    assert DNF.disable(text, "a.repo", "x", [URL], "x86_64") == (text, ())
    assert DNF.enable(text, "x") == NVIDIA
    assert DNF.enable(text, "other") == text


LINES = st.sampled_from(
    ["[a]", "[b]", f"baseurl={URL}/x", "baseurl=http://o/", f"mirrorlist={URL}", "enabled=1",
     "enabled = 0", "ENABLED=yes", f"  {URL}/y", "# note", "", "gpgkey=file:///k"]
)  # fmt: skip


@given(st.lists(LINES, max_size=12), st.booleans())
def test_what_is_switched_off_comes_back_to_the_byte(lines, newline):
    text = "\n".join(lines) + ("\n" if newline and lines else "")
    off, gone = DNF.disable(text, "a.repo", "x", [URL], "x86_64")
    if gone:
        assert DNF.enable(off, "x") == text
        assert DNF.disable(off, "a.repo", "x", [URL], "x86_64")[1] == ()
    else:
        assert off == text


def test_only_our_section_goes():
    ours = DNF.sources(request(), State({}))
    assert DNF.without_ours(request(), ours) is None
    assert DNF.without_ours(request(), NVIDIA + ours) == NVIDIA
    assert DNF.signs("a.repo", ours, "/etc/pki/rpm-gpg/RPM-GPG-KEY-kubegpu-x")
    assert not DNF.signs("a.repo", NVIDIA, "/etc/pki/rpm-gpg/RPM-GPG-KEY-kubegpu-x")
