# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.installed import Package
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.facts import (
    is_wanted,
    key_fingerprints,
    parse_repo,
    read_config,
    read_repositories,
    read_specifications,
    read_toolkit,
)
from tests.unit.fixtures.make_tree import write
from tests.unit.plugins.module_utils._formats.test_openpgp import (
    ED25519,
    ED25519_FINGERPRINT,
    RSA2048,
    RSA2048_FINGERPRINT,
)

TOOLKIT = "https://nvidia.github.io/libnvidia-container/stable/deb/amd64"
KEYRING = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
CONFIG = "/etc/nvidia-container-runtime/config.toml"


@pytest.fixture
def reader(tmp_path: Path) -> NodeReader:
    return NodeReader(str(tmp_path))


def test_no_toolkit(reader: NodeReader) -> None:
    assert read_toolkit(reader, ()) == {
        "version": None,
        "packages": {},
        "held": None,
        "cdi_spec": None,
        "config": None,
        "driver_roots": {},
        "obsolete_packages": {},
    }


def test_toolkit(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, CONFIG, 'a = 1\n[nvidia-container-runtime]\nmode = "cdi"\n[x.y]\nz = ["b"]\n')
    write(
        tmp_path,
        "/run/cdi/nvidia.yaml",
        "cdiVersion: 0.5.0\n- hostPath: /usr/lib/libcuda.so.580.126.09\n",
    )
    write(tmp_path, "/etc/cdi/nvidia.yaml", "- hostPath: /usr/lib/libcuda.so.535.129.03\n")
    packages = (
        Package("nvidia-container-toolkit", "1.20.0-1", held=True),
        Package("libnvidia-container1", "1.19.0-1"),
        Package("nvidia-docker2", "2.13.0-1"),
        Package("nvidia-driver-580", "580.126.09"),
    )
    assert read_toolkit(reader, packages) == {
        "version": "1.20.0-1",
        "packages": {"nvidia-container-toolkit": "1.20.0-1", "libnvidia-container1": "1.19.0-1"},
        "held": False,
        "cdi_spec": {"path": "/var/run/cdi/nvidia.yaml", "driver_version": "580.126.09"},
        "config": {"a": 1, "nvidia-container-runtime.mode": "cdi", "x.y.z": ["b"]},
        "driver_roots": {CONFIG: "/"},
        "obsolete_packages": {"nvidia-docker2": "2.13.0-1"},
    }


def test_specification_without_a_driver(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, "/etc/cdi/nvidia.json", "{}")
    spec = read_toolkit(reader, ())["cdi_spec"]
    assert spec == {"path": "/etc/cdi/nvidia.json", "driver_version": None}


OPERATORS = "/usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml"


def test_where_toolkits_search_for_the_driver(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, CONFIG, "[nvidia-container-cli]\n#root = '/run/nvidia/driver'\n")
    write(tmp_path, OPERATORS, "[nvidia-container-cli]\nroot = '/run/nvidia/driver'\n")
    roots = read_toolkit(reader, ())["driver_roots"]
    assert roots == {CONFIG: "/", OPERATORS: "/run/nvidia/driver"}
    # What is no path, and what is no TOML.
    write(tmp_path, CONFIG, "[nvidia-container-cli]\nroot = 5\n")
    write(tmp_path, OPERATORS, "root = = /\n")
    assert read_toolkit(reader, ())["driver_roots"] == {}


# The first as nvidia-ctk 1.20 writes it, with kind at the end, and as its JSON.
@pytest.mark.parametrize(("name", "content", "kind", "version"), [
    ("nvidia.yaml", "---\ncdiVersion: 0.7.0\ncontainerEdits:\n  env:\n  - A=kind: x/y\n"
     + "  - b\n" * 50_000 + "kind: nvidia.com/gpu\n", "nvidia.com/gpu", "0.7.0"),
    ("nvidia.json", '{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[]}',
     "nvidia.com/gpu", "0.5.0"),
    ("amd.json", '{\n  "cdiVersion": "0.6.0",\n  "kind": "amd.com/gpu"\n}', "amd.com/gpu", "0.6.0"),
    ("k8s.gpu.nvidia.com-claim_a.yaml", "cdiVersion: v1.1.0\nkind: 'k8s.gpu.nvidia.com/claim'\n",
     "k8s.gpu.nvidia.com/claim", "1.1.0"),
    ("empty.yaml", "", None, None), ("wrong.json", "[" * 200_000, None, None),
    ("bytes.yaml", b"\xff\0" * 100_000, None, None),
    ("version.yaml", "cdiVersion: " + "9" * 100_000 + "\nkind: nvidia.com/" + "g" * 300,
     None, None),
])  # fmt: skip
def test_specifications(
    tmp_path: Path,
    reader: NodeReader,
    name: str,
    content: str | bytes,
    kind: str | None,
    version: str | None,
) -> None:
    write(tmp_path, f"/run/cdi/{name}", content)

    (found,) = read_specifications(reader)
    path = f"/var/run/cdi/{name}"
    if kind is None:
        assert (found["path"], found["version"]) == (path, None)
    else:
        assert found == {"path": path, "kind": kind, "version": version}


def test_specifications_of_both_folders_are_bounded(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, "/etc/cdi/nvidia.yaml", "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n")
    # Engines do not read these.
    write(tmp_path, "/etc/cdi/nvidia.yaml.bak", "cdiVersion: 0.7.0\nkind: nvidia.com/gpu\n")
    write(tmp_path, "/etc/cdi/nvidia.yml", "cdiVersion: 0.7.0\nkind: nvidia.com/gpu\n")
    write(tmp_path, "/var/run/cdi/other.yaml", "cdiVersion: 0.6.0\nkind: example.com/x\n")
    assert [one["path"] for one in read_specifications(reader)] == [
        "/var/run/cdi/other.yaml", "/etc/cdi/nvidia.yaml",
    ]  # fmt: skip
    for number in range(100):
        write(tmp_path, f"/var/run/cdi/claim{number}.yaml", "cdiVersion: 0.6.0\n")
    write(tmp_path, "/var/run/cdi/nvidia.yaml", "cdiVersion: 0.7.0\nkind: nvidia.com/gpu\n")
    found = read_specifications(reader)
    assert len(found) == 64 and found[0]["path"] == "/var/run/cdi/nvidia.yaml"
    # A specification of a vendor may be large; what is beyond the limit is not read.
    write(tmp_path, "/var/run/cdi/nvidia.yaml", "cdiVersion: 0.7.0\n" + "#" * (20 << 20))
    assert read_specifications(reader)[0]["version"] == "0.7.0"
    os.mkfifo(tmp_path / "etc/cdi/a.yaml")
    assert len(read_specifications(reader)) == 64


@pytest.mark.parametrize(("text", "expected"), [(None, None), ("a = = 1", None), ("", {})])
def test_config(text: str | None, expected: dict[str, object] | None) -> None:
    assert read_config(text) == expected


def test_apt_repositories(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, KEYRING, ED25519)
    write(tmp_path, "/etc/apt/keyrings/two.asc", ED25519 + RSA2048)
    folder = "/etc/apt/sources.list.d"
    write(tmp_path, "/etc/apt/sources.list", "deb http://mirror.example/debian trixie main\n")
    write(
        tmp_path,
        f"{folder}/nvidia-container-toolkit.list",
        f"deb [signed-by={KEYRING}] {TOOLKIT} /\n#deb [signed-by={KEYRING}] {TOOLKIT} /\n",
    )
    write(
        tmp_path,
        f"{folder}/kubegpu-toolkit.sources",
        "Types: deb\nURIs: https://user:secret@mirror.example.invalid/a\nSuites: /\n"
        "Signed-By: /etc/apt/keyrings/two.asc\n",
    )
    write(tmp_path, f"{folder}/x.list.disabled", f"deb {TOOLKIT} /\n")
    file = f"{folder}/nvidia-container-toolkit.list"
    entry = {
        "file": file,
        "uri": TOOLKIT,
        "key_fingerprint": ED25519_FINGERPRINT,
        "key_fingerprints": [ED25519_FINGERPRINT],
        "signed_by": KEYRING,
        "enabled": True,
    }
    assert read_repositories(reader) == [
        {
            "file": f"{folder}/kubegpu-toolkit.sources",
            "uri": "https://***@mirror.example.invalid/a",
            "key_fingerprint": None,
            "key_fingerprints": [ED25519_FINGERPRINT, RSA2048_FINGERPRINT],
            "signed_by": "/etc/apt/keyrings/two.asc",
            "enabled": True,
        },
        entry,
        {**entry, "enabled": False},
    ]


def test_rpm_repositories(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, "/etc/pki/rpm-gpg/nvidia", RSA2048)
    write(
        tmp_path,
        "/etc/yum.repos.d/cuda-rhel9.repo",
        "[cuda]\nname=cuda\n# x\nbaseurl = https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64\n"
        "enabled=0\ngpgkey=file:///etc/pki/rpm-gpg/nvidia\n"
        "  https://developer.download.nvidia.com/x.pub\n[base]\nbaseurl=https://example.invalid/\n",
    )
    (entry,) = read_repositories(reader)
    assert entry["key_fingerprint"] == RSA2048_FINGERPRINT
    assert entry["enabled"] is False


def test_parse_repo() -> None:
    assert parse_repo("x=1\n[a]\nB = 2\n c\n\n[d]\n; x\ne=f=g\n") == [
        {"b": "2 c"},
        {"e": "f=g"},
    ]


@pytest.mark.parametrize(
    ("path", "uri", "expected"),
    [
        ("/a/x.list", "https://nvidia.github.io/libnvidia-container/stable/deb", True),
        ("/a/x.list", "https://developer.download.nvidia.com/compute/cuda/repos/debian12", True),
        ("/a/x.list", "https://mirror.example.invalid/libnvidia-container", True),
        ("/a/x.list", "https://repo.radeon.com/rocm/apt/6.4", True),
        ("/a/x.list", "https://repositories.intel.com/gpu/ubuntu", True),
        ("/a/x.list", "https://mirror.example/debian", False),
        ("/a/kubegpu-x.sources", "http://mirror.example.invalid", True),
        ("/a/kubegpu-x.txt", "http://mirror.example.invalid", False),
    ],
)
def test_is_wanted(path: str, uri: str, expected: bool) -> None:
    assert is_wanted(path, uri) is expected


@pytest.mark.parametrize(
    ("signed_by", "expected"),
    [
        (None, []),
        (ED25519.decode(), [ED25519_FINGERPRINT]),
        ("/nowhere.gpg", []),
        ("/damaged", []),
        (RSA2048_FINGERPRINT.lower() + "!", [RSA2048_FINGERPRINT]),
        (f"{RSA2048_FINGERPRINT},/key.gpg", [RSA2048_FINGERPRINT, ED25519_FINGERPRINT]),
    ],
)
def test_key_fingerprints(
    tmp_path: Path, reader: NodeReader, signed_by: str | None, expected: list[str]
) -> None:
    write(tmp_path, "/key.gpg", ED25519)
    write(tmp_path, "/damaged", ED25519[:200])
    assert key_fingerprints(reader, signed_by) == expected
