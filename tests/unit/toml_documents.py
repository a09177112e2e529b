# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""TOML texts in a mixture of styles, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.toml_edit import (
    render,
    render_key,
)

KEYS = st.sampled_from(["a", "b", "c", "d e", "x.y"])
SCALARS = st.one_of(
    st.integers(-5, 5),
    st.booleans(),
    st.sampled_from(["", "x", "a]b", "#", 'q"']),
    st.lists(st.integers(0, 3), max_size=3),
)
TREES = st.recursive(
    st.dictionaries(KEYS, SCALARS, max_size=3),
    lambda inner: st.dictionaries(KEYS, st.one_of(SCALARS, inner), max_size=3),
    max_leaves=8,
)


@st.composite
def documents(draw):
    """Return a TOML text in a mixture of styles."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    lines = []

    def table(data, path):
        tables = []
        for key, value in data.items():
            if isinstance(value, dict):
                style = draw(st.sampled_from(["header", "inline"]))
                if style == "header":
                    tables.append((key, value))
                    continue
            lines.append(
                draw(st.sampled_from(["", "  ", "\t"]))
                + f"{render_key(key)} = {render(value)}"
                + draw(st.sampled_from(["", " # c", "   "]))
            )
            lines.extend(draw(st.sampled_from([[], [""], ["# comment [x]"]])))
        for key, value in tables:
            lines.append(
                draw(st.sampled_from(["", "  "]))
                + "["
                + ".".join(render_key(part) for part in (*path, key))
                + "]"
            )
            table(value, (*path, key))

    table(draw(TREES), ())
    return newline.join(lines) + draw(st.sampled_from(["", newline]))
