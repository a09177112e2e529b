# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.record import (
    ABSENT,
    ALTERNATIVES,
    LINK,
    OTHER,
    Link,
    Memory,
    Proof,
    check_release,
    explain_compile,
    explain_runfile,
    give_link_back,
    nvcc_release,
    parse_alternatives,
    set_link,
)

# Recorded from the real nvcc: of Debian 12 and 13 (nvidia-cuda-toolkit), and of CUDA 13.0.
FIXTURES = Path(__file__).parents[3] / "fixtures/cuda"
PLACE = "/usr/local/cuda"


def words(name):
    return (FIXTURES / name).read_text(encoding="utf-8")


def proof(version="11.8", **more):
    return Proof(version, f"/usr/local/cuda-{version}", "sm_70", **more)


@pytest.mark.parametrize("version", ["11.8.89", "12.4.131", "13.0.88"])
def test_what_the_real_compilers_say_of_their_version(version):
    text = words(f"nvcc-version-{version}.txt")
    release = version.rpartition(".")[0]
    assert nvcc_release(text) == (release, version)
    assert check_release(proof(release), text, found=True) == version


def test_a_compiler_of_another_release():
    with pytest.raises(KubegpuError, match=r"is of CUDA 13\.0, not 12\.9"):
        check_release(proof("12.9"), words("nvcc-version-13.0.88.txt"), found=True)


@pytest.mark.parametrize(("found", "cause"), [(False, "is not there"), (True, "does not say")])
def test_no_compiler(found, cause):
    with pytest.raises(KubegpuError, match=cause):
        check_release(proof(), "Segmentation fault", found=found)


@pytest.mark.parametrize(
    ("name", "cause", "next_step"),
    [
        ("compile-11.8.89-gcc-12.txt", "the host compiler g++ is too new", "/usr/bin/g++-11"),
        ("compile-11.8.89-debian-no-compiler.txt", "no host compiler", "build-essential"),
        ("compile-13.0.88-no-compiler.txt", "no host compiler", "Install g++"),
        ("compile-13.0.88-no-ccbin.txt", "no host compiler", "host_compiler"),
        ("compile-11.8.89-sm_100.txt", "for sm_100, which a GPU", "knows the GPU"),
        ("compile-13.0.88-sm_70.txt", "for sm_70, which a GPU", "dropped"),
        ("compile-11.8.89-ptxas-of-13.0.txt", "cannot compile.", "by hand"),
    ],
)
def test_what_the_real_compilers_say_when_they_cannot(name, cause, next_step):
    error = explain_compile(proof(), words(name))
    assert cause in error.cause
    assert next_step in error.next_step
    assert error.evidence


def test_the_search_path_has_this_toolkit_first_and_no_local_programs():
    path = proof().environment["PATH"].split(":")
    assert path[0] == "/usr/local/cuda-11.8/bin"
    assert "/usr/local/bin" not in path


def test_arguments_of_the_proof():
    assert proof(host_compiler="/usr/bin/g++-11").arguments("a.cu", "a.o")[1:] == [
        *("-c", "-arch=sm_70", "-ccbin", "/usr/bin/g++-11", "-o", "a.o", "a.cu"),
    ]
    assert Proof("11.8", "/x", None).arguments("a.cu", "a.o") == [
        *("/x/bin/nvcc", "-c", "-o", "a.o", "a.cu"),
    ]


def test_words_of_the_installer():
    log = "[INFO]: Driver not selected\n[ERROR]: Install of toolkit failed, quitting\n"
    error = explain_runfile("12.2", "/usr/local/cuda-12.2", "", log)
    assert error.evidence == "[ERROR]: Install of toolkit failed, quitting"
    assert "is as it was" in error.cause


# The link. The commands themselves are run by test_cuda_toolkit.py.


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
        (Link(LINK, "/a"), ["ln", "mv"]),
        (Link(LINK, "/b"), []),
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
    with pytest.raises(KubegpuError, match="is no link"):
        set_link(PLACE, Link(OTHER), "/b")


@pytest.mark.parametrize(
    ("before", "now", "target", "last"),
    [
        # It was not there: our own link goes, and the packages' with the packages.
        (Link(ABSENT), Link(LINK, "/b"), "", "rm"),
        (Link(ABSENT), Link(ABSENT), "", None),
        (Link(ABSENT), GROUP, "/a", "--auto"),
        (Link(LINK, "/x"), Link(LINK, "/b"), "/x", "mv"),
        (Link(LINK, "/x"), Link(ABSENT), "/x", "mv"),
        (Link(LINK, "/x"), Link(ALTERNATIVES, "/b", True, ("/b",)), "/x", "mv"),
        (GROUP, Link(ALTERNATIVES, "/b", True, ("/a", "/b")), "/a", "--auto"),
        (Link(ALTERNATIVES, "/a", True, ("/a",)), Link(ALTERNATIVES, "/b", True, ("/a", "/b")),
         "/a", "--set"),
        # Somebody set it to something else since.
        (Link(ABSENT), Link(LINK, "/other"), "/other", None),
        (GROUP, Link(ALTERNATIVES, "/c", True, ("/a", "/c")), "/c", None),
    ],
)  # fmt: skip
def test_how_the_link_is_given_back(before, now, target, last):
    memory = Memory(before, "/b", ("/b",) if "/b" in now.choices else ())
    change = give_link_back(PLACE, now, memory)
    assert change.after.target == target
    words_ = [word for argv in change.commands for word in argv]
    assert (last in words_) if last else not change.commands or "--remove" in words_
    assert bool(change.warning) == (now.target in ("/other", "/c"))


def test_a_link_that_we_never_set_stays():
    assert give_link_back(PLACE, Link(LINK, "/x"), Memory(Link(LINK, "/x"))).commands == ()
