# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._repository.apt_parser import (
    DEB822,
    ONE_LINE,
    AptEntry,
    parse,
)

TOOLKIT = "https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH)"
KEYRING = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"


def one_line(**changes: object) -> AptEntry:
    fields: dict[str, object] = {
        "file": "x.list",
        "start_line": 1,
        "end_line": 1,
        "kind": ONE_LINE,
        "types": ("deb",),
        "uris": (TOOLKIT,),
        "suites": ("/",),
        "components": (),
        **changes,
    }
    return AptEntry(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(f"deb {TOOLKIT} /", one_line(), id="plain"),
        pytest.param(
            f"deb [signed-by={KEYRING}] {TOOLKIT} /",
            one_line(options={"signed-by": KEYRING}),
            id="as NVIDIA documents it",
        ),
        pytest.param(
            f"deb [ Arch=amd64,arm64 signed-by={KEYRING} trusted=yes ] {TOOLKIT} /",
            one_line(options={"arch": "amd64 arm64", "signed-by": KEYRING, "trusted": "yes"}),
            id="several options",
        ),
        pytest.param(
            f"deb [arch=amd64 arch+=arm64]{TOOLKIT} /",
            one_line(options={"arch": "amd64 arm64"}),
            id="added option",
        ),
        pytest.param(f"#deb {TOOLKIT} /", one_line(enabled=False), id="commented out"),
        pytest.param(
            f"# deb {TOOLKIT} / # disabled on upgrade to noble",
            one_line(enabled=False),
            id="disabled on upgrade",
        ),
        pytest.param(
            "  deb-src\thttp://mirror.example/debian trixie main  contrib # note",
            one_line(
                types=("deb-src",),
                uris=("http://mirror.example/debian",),
                suites=("trixie",),
                components=("main", "contrib"),
            ),
            id="source, with a comment",
        ),
        pytest.param(
            "deb [signed-by=/k#1.gpg] file:/srv/repo ./",
            one_line(uris=("file:/srv/repo",), suites=("./",), options={"signed-by": "/k#1.gpg"}),
            id="number sign inside brackets",
        ),
    ],
)
def test_one_line(line: str, expected: AptEntry) -> None:
    assert parse("x.list", line + "\n") == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "# deb packages of the site",
        "## Note, this file is written by cloud-init",
        "deb",
        "deb https://example.invalid",
        "deb [signed-by=/x https://example.invalid /",
        "rpm https://example.invalid /",
        "# deb src lines",
    ],
)
def test_no_entry(line: str) -> None:
    assert parse("x.list", line) == []


def test_lines_are_counted() -> None:
    text = f"# first\n\ndeb {TOOLKIT} /\nnonsense\ndeb-src {TOOLKIT} /\n"
    assert [(entry.start_line, entry.types) for entry in parse("x.list", text)] == [
        (3, ("deb",)),
        (5, ("deb-src",)),
    ]


SOURCES = """\
# The toolkit
Types: deb
URIs: https://nvidia.github.io/libnvidia-container/stable/deb/amd64
Suites: /
Signed-By: /etc/apt/keyrings/nvidia.gpg

types: deb deb-src
# a comment in between
uris: http://one.example.invalid/debian
  http://two.example.invalid/debian
suites: trixie
  trixie-updates
components: main
enabled: no
architectures: amd64
"""


def test_deb822() -> None:
    assert parse("/etc/apt/sources.list.d/x.sources", SOURCES) == [
        AptEntry(
            file="/etc/apt/sources.list.d/x.sources",
            start_line=2,
            end_line=5,
            kind=DEB822,
            types=("deb",),
            uris=("https://nvidia.github.io/libnvidia-container/stable/deb/amd64",),
            suites=("/",),
            components=(),
            options={"signed-by": "/etc/apt/keyrings/nvidia.gpg"},
        ),
        AptEntry(
            file="/etc/apt/sources.list.d/x.sources",
            start_line=7,
            end_line=15,
            kind=DEB822,
            types=("deb", "deb-src"),
            uris=("http://one.example.invalid/debian", "http://two.example.invalid/debian"),
            suites=("trixie", "trixie-updates"),
            components=("main",),
            options={"architectures": "amd64"},
            enabled=False,
        ),
    ]


def test_embedded_key_is_unfolded() -> None:
    text = (
        "Types: deb\nURIs: https://a.example.invalid\nSuites: /\nSigned-By:\n"
        " -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mDME\n -----END PGP PUBLIC KEY BLOCK-----\n"
    )
    (entry,) = parse("x.sources", text)
    assert entry.signed_by == (
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDME\n-----END PGP PUBLIC KEY BLOCK-----"
    )
    assert (entry.start_line, entry.end_line) == (1, 8)


@pytest.mark.parametrize("word", ["no", "No", "false", "off", "disable", "without", "0"])
def test_words_for_disabled(word: str) -> None:
    text = f"Types: deb\nURIs: https://a.example.invalid\nSuites: /\nEnabled: {word}\n"
    assert [entry.enabled for entry in parse("x.sources", text)] == [False]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n# only a comment\n",
        "Suites: /\n",
        "URIs: https://a.example.invalid\n",
        " folded\nTypes: deb\n",
    ],
)
def test_incomplete_stanza_is_no_entry(text: str) -> None:
    assert parse("x.sources", text) == []
