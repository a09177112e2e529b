# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia import runfile as _runfile
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.runfile import (
    CUDA,
    DRIVER,
    GRID,
    STANDARD,
    VGPU_HOST,
    Checksum,
    Runfile,
    beside_nouveau,
    check_cuda,
    check_driver,
    checksum_from_text,
    cuda_arguments,
    file_name,
    install_arguments,
    is_file_name,
    parse_checksum,
    parse_name,
    shown,
    uninstall_arguments,
)

HEX = "0123456789abcdef" * 4
OTHER = "f" * 64
NAME = "NVIDIA-Linux-x86_64-580.95.05.run"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (f"/srv/{NAME}", Runfile(NAME, DRIVER, STANDARD, "580.95.05", None, "x86_64")),
        (
            "https://us.download.nvidia.com/tesla/595.58.03/NVIDIA-Linux-aarch64-595.58.03.run?x=/y",
            Runfile("NVIDIA-Linux-aarch64-595.58.03.run", DRIVER, STANDARD, "595.58.03", None,
                    "aarch64"),
        ),
        (
            "NVIDIA-Linux-x86_64-470.82-no-compat32.run",
            Runfile("NVIDIA-Linux-x86_64-470.82-no-compat32.run", DRIVER, STANDARD, "470.82", None,
                    "x86_64"),
        ),
        (
            "NVIDIA-Linux-x86_64-550.90.07-grid.run",
            Runfile("NVIDIA-Linux-x86_64-550.90.07-grid.run", DRIVER, GRID, "550.90.07", None,
                    "x86_64"),
        ),
        (
            "NVIDIA-Linux-x86_64-595.71.05-grid-aws.run",
            Runfile("NVIDIA-Linux-x86_64-595.71.05-grid-aws.run", DRIVER, GRID, "595.71.05", None,
                    "x86_64"),
        ),
        (
            "NVIDIA-Linux-x86_64-550.90.05-vgpu-kvm.run",
            Runfile("NVIDIA-Linux-x86_64-550.90.05-vgpu-kvm.run", DRIVER, VGPU_HOST, "550.90.05",
                    None, "x86_64"),
        ),
        (
            "cuda_13.0.2_580.95.05_linux.run",
            Runfile("cuda_13.0.2_580.95.05_linux.run", CUDA, None, "580.95.05", "13.0.2", "x86_64"),
        ),
        (
            # From 13.4.1 on without a driver (release notes of CUDA 13.4; NVIDIA's archive).
            "cuda_13.4.1_linux.run",
            Runfile("cuda_13.4.1_linux.run", CUDA, None, None, "13.4.1", "x86_64"),
        ),
        (
            "cuda_13.4.2_linux_sbsa.run",
            Runfile("cuda_13.4.2_linux_sbsa.run", CUDA, None, None, "13.4.2", "aarch64"),
        ),
        (
            "cuda_12.8.1_570.124.06_linux_sbsa.run",
            Runfile("cuda_12.8.1_570.124.06_linux_sbsa.run", CUDA, None, "570.124.06", "12.8.1",
                    "aarch64"),
        ),
        ("driver.run", Runfile("driver.run")),
        ("/srv/NVIDIA-Linux-x86_64-580.95.05.run.sha256sum",
         Runfile("NVIDIA-Linux-x86_64-580.95.05.run.sha256sum")),
        ("", Runfile("")),
    ],
)  # fmt: skip
def test_parse_name(place, expected):
    assert parse_name(place) == expected


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
    ("name", "arch", "guest", "said"),
    [
        ("NVIDIA-Linux-x86_64-550.90.05-vgpu-kvm.run", "x86_64", True, "hypervisor's host"),
        ("NVIDIA-Linux-x86_64-550.90.05-vgpu-kvm.run", None, None, "hypervisor's host"),
        ("NVIDIA-Linux-x86_64-550.90.07-grid.run", "x86_64", False, "has whole GPUs"),
        (NAME, "x86_64", True, "only a GRID driver"),
        (NAME, "aarch64", False, "is for x86_64, but this node is aarch64"),
        ("NVIDIA-Linux-aarch64-595.58.03.run", "amd64", False, "this node is x86_64"),
        ("cuda_13.0.2_580.95.05_linux.run", "x86_64", False, "not of a driver"),
    ],
)
def test_a_wrong_file_is_refused(name, arch, guest, said):
    with pytest.raises(InputError) as caught:
        check_driver(f"/srv/{name}", arch=arch, guest=guest)
    assert said in caught.value.cause and name in caught.value.cause and caught.value.next_step


@pytest.mark.parametrize(
    ("name", "guest"),
    [
        (NAME, False), (NAME, None), ("NVIDIA-Linux-x86_64-550.90.07-grid.run", True),
        ("NVIDIA-Linux-x86_64-550.90.07-grid.run", None), ("mine.run", True),
    ],
)  # fmt: skip
def test_a_right_file_is_taken(name, guest):
    assert check_driver(name, arch="x86_64", guest=guest).name == name


def test_cuda_files():
    assert check_cuda("cuda_13.0.2_580.95.05_linux.run", arch="x86_64").cuda == "13.0.2"
    with pytest.raises(InputError, match="installer of a driver"):
        check_cuda(NAME)
    with pytest.raises(InputError, match="is for aarch64"):
        check_cuda("cuda_12.8.1_570.124.06_linux_sbsa.run", arch="x86_64")


@pytest.mark.parametrize(
    ("version", "flavour", "dkms", "more", "arguments"),
    [
        ("580.95.05", "open", True, {}, ["--silent", "-m=kernel-open", "--dkms", "--no-x-check"]),
        (
            "580.95.05", "proprietary", False, {"load": False, "running": True},
            ["--silent", "-m=kernel", "--no-dkms", "--skip-module-load",
             "--allow-installation-with-running-driver", "--no-x-check"],
        ),
        (
            "470.256.02", "proprietary", True, {"load": False, "running": True},
            ["--silent", "--dkms", "--no-x-check"],
        ),
        (
            "535.288.01", "open", True,
            {"compute_only": True, "kernel": "6.1.0-37-amd64", "temporary": "/var/tmp"},
            ["--silent", "-m=kernel-open", "--dkms", "--no-opengl-files",
             "--no-install-compat32-libs", "--no-x-check", "--kernel-name=6.1.0-37-amd64",
             "--tmpdir=/var/tmp"],
        ),
    ],
)  # fmt: skip
def test_install_arguments(version, flavour, dkms, more, arguments):
    assert install_arguments(version, flavour, dkms, **more) == arguments


def test_arguments_that_cannot_be():
    with pytest.raises(InputError, match="has no open kernel modules"):
        install_arguments("470.256.02", "open", True)
    with pytest.raises(InputError, match="'auto'"):
        install_arguments("580.95.05", "auto", True)


def test_uninstall_and_cuda_arguments():
    assert uninstall_arguments() == ["/usr/bin/nvidia-uninstall", "--silent"]
    assert uninstall_arguments("/usr/bin/nvidia-installer") == [
        "/usr/bin/nvidia-installer", "--uninstall", "--silent",
    ]  # fmt: skip
    assert uninstall_arguments("/usr/local/cuda-13.0/bin/cuda-uninstaller")[1:] == ["--silent"]
    arguments = cuda_arguments("/usr/local/cuda-13.0", temporary="/var/tmp")
    assert arguments[:3] == ["--silent", "--toolkit", "--toolkitpath=/usr/local/cuda-13.0"]
    assert "--override" in arguments and "--tmpdir=/var/tmp" in arguments
    assert "--driver" not in arguments


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
    assert _runfile._redistrib_files(value) == [(NAME, HEX)]


def test_a_sum_of_an_archive_in_the_json_does_not_pass_for_the_runfile():
    with pytest.raises(InputError, match=r"has no entry for NVIDIA-Linux"):
        checksum_from_text(REDISTRIB, "NVIDIA-Linux-x86_64-610.57.04.run", "/redistrib.json")


def test_beside_nouveau():
    assert beside_nouveau("580.95.05") == ["--no-nouveau-check"]
    # It would try to load what it built.
    assert beside_nouveau("535.288.01") == []
