# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia import checksum
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.checksum import (
    Checksum,
    checksum_from_text,
    file_name,
    is_file_name,
    parse_checksum,
    shown,
)

NAME = "NVIDIA-Linux-x86_64-580.95.05.run"
HEX = "0123456789abcdef" * 4


OTHER = "f" * 64


@pytest.mark.parametrize(
    ("place", "name", "to_show"),
    [
        ("/srv/a b.run", "a b.run", "/srv/a b.run"),
        ("https://u:p@h:8/x/a%20b.run?sig=s#f", "a b.run", "https://***@h:8/x/a%20b.run?***"),
        ("http://h/x.run", "x.run", "http://h/x.run"),
        ("http://h/", "", "http://h/"),
        ("/srv/x/", "x", "/srv/x/"),
    ],
)
def test_places(place, name, to_show):
    assert (file_name(place), shown(place)) == (name, to_show)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (HEX, Checksum(sha256=HEX)),
        (f" {HEX.upper()} ", Checksum(sha256=HEX)),
        (f"sha256:{HEX}", Checksum(sha256=HEX)),
        (f"SHA256: {HEX}", Checksum(sha256=HEX)),
        ("https://h/x.run.sha256sum", Checksum(source="https://h/x.run.sha256sum")),
        ("sha256:https://h/x.sha256sum", Checksum(source="https://h/x.sha256sum")),
        ("/srv/SHA256SUMS", Checksum(source="/srv/SHA256SUMS")),
    ],
)
def test_parse_checksum(option, expected):
    found = parse_checksum(option, NAME)
    assert found == expected and found.is_url == (option.find("://") > 0)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (None, "has no checksum"), ("", "has no checksum"), ("  ", "has no checksum"),
        ("sha256:", "has no checksum"), (HEX[:-1], "neither a sha256"),
        ("SHA256SUMS", "neither a sha256"), (f"md5:{HEX[:32]}", "md5 is not taken"),
        (f"sha512:{HEX}{HEX}", "sha512 is not taken"),
        # Whoever is on the way to the runfile is on the way to its checksum.
        ("http://u:secret@h/x.run.sha256sum", "http://***@h/x.run.sha256sum is not read"),
        ("HTTP://h/x?secret", "HTTP://h/x?*** is not read"), ("ftp://h/x", "is not read"),
        ("sha256:http://h/x", "is not read"), ("HTTPS://u:secret@h/x", "'HTTPS://***@h/x'"),
    ],
)  # fmt: skip
def test_checksums_that_are_none(option, said):
    with pytest.raises(InputError) as caught:
        parse_checksum(option, NAME)
    assert said in caught.value.cause and NAME in caught.value.cause and caught.value.next_step
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "place",
    ["https://h/..", "https://h/%2e%2e", "https://h/a%2f..%2F..", "https://h/a/%2E", "/srv/..",
     "https://h/", "https://h/a%0ab", "https://h/a%00"],
)  # fmt: skip
def test_names_of_no_file(place):
    """``..`` wrote one folder above the cache."""
    assert not is_file_name(file_name(place))


def test_names_of_files():
    for name in (NAME, "a b.run", "..run", "x"):
        assert is_file_name(name)


REDISTRIB = json.dumps(
    {
        "release_date": "2026-08-03",
        "release_product": "nvidia-driver",
        "nvidia_driver": {
            "name": "NVIDIA Linux Driver",
            "version": "610.57.04",
            "linux-x86_64": {
                "relative_path": "nvidia_driver/linux-x86_64/"
                "nvidia_driver-linux-x86_64-610.57.04-archive.tar.xz",
                "sha256": HEX.upper(), "md5": "x", "size": "1",
            },
            "linux-sbsa": [{"relative_path": "a/b.tar.xz", "sha256": OTHER}],
        },
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"{HEX}  {NAME}\n", NAME),
        (f"{HEX} *{NAME}", NAME),
        (f"# sums\n{OTHER}  x.run\r\n{HEX}  ./tesla/{NAME}\r\n", NAME),
        (f"{HEX}\n", NAME),
        (f"SHA256 ({NAME}) = {HEX}\n{OTHER}", NAME),
        (REDISTRIB, "nvidia_driver-linux-x86_64-610.57.04-archive.tar.xz"),
    ],
)
def test_checksum_from_text(text, name):
    assert checksum_from_text(text, name, "/srv/sums") == HEX


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "https://***@h/sums has no sha256"),
        ("<html>Log in</html>", "begins with '<html>"),
        (f"{OTHER}  x.run\n", "it names x.run"),
        (f"{OTHER}\n{HEX}\n", "has no sha256"),
        (REDISTRIB, "it lists 2 files: b.tar.xz"),
        ("{", "is not JSON"),
        ('{"a":' * 200_000, "is not JSON"),
        (f"{OTHER}  " + "x" * 4_000_000, "it names xxx"),
        ("{}", "it lists 0 files"),
    ],
)
def test_no_checksum_in_the_text(text, said):
    with pytest.raises(InputError) as caught:
        checksum_from_text(text, NAME, "https://u:secret@h/sums")
    assert said in str(caught.value) and caught.value.next_step
    assert "secret" not in str(caught.value) and len(str(caught.value)) < 1000


def test_a_list_that_is_nested_as_deep_as_json_goes_is_read():
    """Python's JSON reader, which is C, goes deeper than a function that calls itself."""
    entry = json.dumps({"relative_path": NAME, "sha256": HEX})
    value = json.loads(entry)
    for _depth in range(20_000):
        value = [value]
    assert checksum._redistrib_files(value) == [(NAME, HEX)]


def test_a_sum_of_an_archive_in_the_json_does_not_pass_for_the_runfile():
    with pytest.raises(InputError, match=r"has no entry for NVIDIA-Linux"):
        checksum_from_text(REDISTRIB, "NVIDIA-Linux-x86_64-610.57.04.run", "/redistrib.json")
