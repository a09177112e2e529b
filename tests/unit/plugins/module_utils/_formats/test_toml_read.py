# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.toml_read import (
    read_regular_toml,
    read_toml,
)

TOOLKIT_CONFIG = """\
#accept-nvidia-visible-devices-as-volume-mounts = false
disable-require = false
supported-driver-capabilities = "compat32,compute,display,graphics,ngx,utility,video"
#swarm-resource = "DOCKER_RESOURCE_GPU"

[nvidia-container-cli]
environment = []
ldconfig = "@/sbin/ldconfig.real"   # where it is
load-kmods = true

[nvidia-container-runtime]
log-level = "info"
mode = "auto"
runtimes = [
  "runc", # first
  "crun",
]

[nvidia-container-runtime.modes.csv]
mount-spec-path = '/etc/nvidia-container-runtime/host-files-for-container.d'
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("\ufeffa = 1 # one\n# two", {"a": 1}),
        (
            'a.b = \'x\'\n[c."d.e"]\nf = "\\u00e9\\n\\""',
            {"a": {"b": "x"}, "c": {"d.e": {"f": 'é\n"'}}},
        ),
        ("[[x]]\na = 1\n[[x]]\na = 2\n[x.y]\nz=3", {"x": [{"a": 1}, {"a": 2, "y": {"z": 3}}]}),
        (
            "a = [1, 2,\n 3,]\nb = {c = 'd', e = [true]}\n",
            {"a": [1, 2, 3], "b": {"c": "d", "e": [True]}},
        ),
        ("a = 0x1F\nb = 1_000\nc = 0.02\nd = -3\n", {"a": 31, "b": 1000, "c": 0.02, "d": -3}),
        ("a = 9223372036854775807", {"a": 9223372036854775807}),
        ("a = '''\nx\ny'''\n", {"a": "x\ny"}),
        ("  [a]\n    b = ''\r\n    [a.c]\r\n", {"a": {"b": "", "c": {}}}),
    ],
)
def test_both_readers(text: str, expected: dict[str, Any]) -> None:
    assert read_regular_toml(text) == expected
    # tomllib wants no byte order mark.
    assert read_toml(text.lstrip("\ufeff")) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a =",
        "a = [1",
        "a = {b = 1",
        "a = 'x",
        "[a",
        "[a]\nb = 1\nb = 2",
        "= 1",
        "a = 1\na.b = 2",
    ],
)
def test_not_toml(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_regular_toml(text)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the oracle is Python's own parser")
def test_toolkit_config_as_python_reads_it() -> None:
    assert read_regular_toml(TOOLKIT_CONFIG) == read_toml(TOOLKIT_CONFIG)


KEYS = st.text("abcXYZ019_-", min_size=1, max_size=8)
PLAIN = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="'\"\\\x7f")
)
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    PLAIN,
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=4))


def render(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, list):
        return f"[{', '.join(render(item) for item in value)}]"
    return repr(value)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the oracle is Python's own parser")
@given(
    st.dictionaries(KEYS, VALUES, max_size=4),
    st.dictionaries(PLAIN, st.dictionaries(KEYS, VALUES, max_size=4), max_size=4),
)
def test_agrees_with_pythons_parser(top: dict[str, Any], tables: dict[str, dict[str, Any]]) -> None:
    lines = [f"{key} = {render(value)}" for key, value in top.items()]
    for name, table in tables.items():
        lines.append(f"[plugins.'{name}']")
        lines.extend(f"  {key} = {render(value)}" for key, value in table.items())
    if "plugins" in top:
        return
    text = "\n".join(lines)
    assert read_regular_toml(text) == read_toml(text)
