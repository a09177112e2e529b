# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How containerd finds and reads its files."""

from __future__ import annotations

import fnmatch
import tomllib

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.config import (
    Effective,
    absorbed,
    imports_path,
    load,
    meaning,
    parse_version,
    resolve_import,
    shadow,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.config_file import (
    ConfigFile,
    config_version,
)


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3", (1, 6)),
        ("containerd github.com/containerd/containerd 1.7.24~ds1 1.7.24~ds1-6+deb13u1", (1, 7)),
        ("containerd github.com/containerd/containerd/v2 2.1.9+unknown ", (2, 1)),
        ("containerd containerd.io v2.2.0 1c4457e00facac03ce1d75f7b6777a7a851e5c41", (2, 2)),
        ("1.7.2", (1, 7)),
        ("2.1", (2, 1)),
    ],
)
def test_parse_version(words, version):
    assert parse_version(words) == version


def test_unknown_version_says_what_was_seen():
    with pytest.raises(InputError, match="weird"):
        parse_version("weird")


@pytest.mark.parametrize(
    ("data", "version"), [({}, 1), ({"version": 0}, 1), ({"version": 2}, 2), ({"version": 3}, 3)]
)
def test_config_version(data, version):
    assert config_version(data) == version


def loaded(files, root="/etc/c.toml", version=(1, 7), builtin=()):
    def read(path):
        return path, files.get(path, "").encode() if path in files else None

    def glob(pattern):
        return fnmatch.filter(files, pattern)

    return [file.path for file in load(root, read, glob, tomllib.loads, version, builtin)]


def test_files_are_loaded_in_containerds_order():
    files = {
        "/etc/c.toml": 'imports = ["/etc/d/*.toml", "one.toml"]\n',
        "/etc/d/b.toml": 'imports = ["/etc/deep.toml"]\n',
        "/etc/d/a.toml": 'imports = ["/etc/c.toml"]\n',
        "/etc/one.toml": "",
        "/etc/deep.toml": "",
    }
    assert loaded(files) == [
        "/etc/c.toml",
        "/etc/d/a.toml",
        "/etc/d/b.toml",
        "/etc/one.toml",
        "/etc/deep.toml",
    ]


def test_builtin_imports_count_only_where_the_file_names_none():
    files = {"/etc/c.toml": "", "/etc/d/a.toml": ""}
    assert loaded(files, builtin=("/etc/d/*.toml",)) == ["/etc/c.toml", "/etc/d/a.toml"]
    files["/etc/c.toml"] = "imports = []\n"
    assert loaded(files, builtin=("/etc/d/*.toml",)) == ["/etc/c.toml"]


def test_relative_patterns_were_looked_for_elsewhere_before_1_7():
    seen = []
    for version in ((1, 6), (1, 7)):
        resolve_import("/etc/c.toml", "d/*.toml", lambda p: seen.append(p) or [], version)
    assert seen == ["/d/*.toml", "/etc/d/*.toml"]


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/etc/d/*.toml", "/etc/d/99.toml", True),
        ("/etc/d/*.toml", "/etc/d/sub/99.toml", False),
        ("/etc/d/99.toml", "/etc/d/99.toml", True),
        ("d/*.toml", "/etc/d/99.toml", True),
        ("/etc/d/9?.toml", "/etc/d/8.toml", False),
    ],
)
def test_imports_path(pattern, path, matches):
    file = ConfigFile("/etc/c.toml", "", {"imports": [pattern]})
    assert imports_path(file, "/etc/c.toml", path, (1, 7)) is matches


def test_shadow_keeps_order_and_meaning_and_switches_cri_on():
    files = [
        ConfigFile(path, text, tomllib.loads(text))
        for path, text in (
            ("/etc/c.toml", 'imports = ["/etc/d/*"] # x\ndisabled_plugins = ["cri"]\na = 1\n'),
            ("/etc/d/b", 'imports = ["/etc/z"]\nb = 1\n'),
            ("/etc/z", "c = 1\n"),
        )
    ]
    copies = shadow(files, "/tmp/x")
    data = [tomllib.loads(text) for text in copies.values()]
    assert list(copies) == ["/tmp/x/000.toml", "/tmp/x/001.toml", "/tmp/x/002.toml"]
    assert data == [
        {"imports": ["/tmp/x/001.toml", "/tmp/x/002.toml"], "disabled_plugins": [], "a": 1},
        {"b": 1},
        {"c": 1},
    ]


def test_absorbed_goes_into_the_last_generated_file_that_has_cri():
    def file(path, text, **more):
        return ConfigFile(path, text, tomllib.loads(text), **more)

    cri = '[plugins."io.containerd.grpc.v1.cri"]\nx = 1\n'
    root = file("/r", "version = 2\n", generated=True)
    merged = file("/m", cri, generated=True)
    edited_by_others = file("/f", cri)
    own = file("/o", 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\nx = 2\ny = [1]\n')
    files = absorbed((root, merged, edited_by_others, own), "/o", tomllib.loads)
    assert [item.path for item in files] == ["/r", "/m", "/f"]
    assert files[1].text == cri.replace("x = 1", "x = 2") + "y = [1]\n"
    assert (files[0], files[2]) == (root, edited_by_others)
    assert absorbed((root, merged), "/o", tomllib.loads) == (root, merged)
    (only,) = absorbed((root, own), "/o", tomllib.loads)
    assert only.data["plugins"] == own.data["plugins"]


def test_meaning_leaves_out_what_says_nothing():
    assert meaning(
        {"a": "", "b": 0, "c": False, "d": [], "e": {"f": {}}, "g": 1, "sandboxer": "podsandbox"}
    ) == {"g": 1}


@pytest.mark.parametrize(
    ("cri", "default", "cdi"),
    [
        ({}, "runc", None),
        ({"containerd": {"default_runtime_name": ""}, "enable_cdi": False}, "runc", False),
        ({"containerd": {"default_runtime_name": "x"}, "enable_cdi": True}, "x", True),
    ],
)
def test_effective(cri, default, cdi):
    effective = Effective({"plugins": {"io.containerd.grpc.v1.cri": cri}})
    assert (effective.default, effective.cdi) == (default, cdi)
