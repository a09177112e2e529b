# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both editors over made configurations of every version; ``tomllib`` and ``json`` are the oracles.

``absent(present(x)) == x``, ``present(present(x)) == present(x)``, and nothing else changed. Where
the real engines judge the same: tests/integration/engines/test_properties.py.
"""

from __future__ import annotations

import json
import tomllib

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils import _docker as docker
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd import (
    Node,
    Request,
    plan_present,
    prune,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd_config import (
    ConfigFile,
    remove,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd_undo import (
    History,
    plan_absent,
)
from tests.unit.engine_documents import containerd_configs, daemon_configs, examples

ROOT = "/etc/containerd/config.toml"
DROP_IN = "/etc/containerd/conf.d/99-nvidia.toml"
WISHES = st.fixed_dictionaries(
    {},
    optional={
        "set_default": st.booleans(),
        "cdi": st.booleans(),
        "name": st.sampled_from(["nvidia", "gpu-2"]),
        "options": st.sampled_from([{}, {"NoNewKeyring": True}, {"SystemdCgroup": False}]),
        "layout": st.just("in_place"),
    },
)


def node(text, made, drop_in=None):
    return Node(
        version=made.containerd,
        files=(ConfigFile(ROOT, text, tomllib.loads(text)),),
        drop_in=ConfigFile(DROP_IN, drop_in, tomllib.loads(drop_in or "")),
    )


def lines_of(text):
    """Return the lines that hold something of somebody's."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def is_part(few, many):
    """Return whether ``few`` is in ``many`` in this order."""
    rest = iter(many)
    return all(item in rest for item in few)


@examples(1200)
@given(containerd_configs(), WISHES)
def test_containerd(made, wishes):
    request = Request(**wishes)
    edits = plan_present(request, node(made.text, made), tomllib.loads).edits
    if not edits:
        return
    (edit,) = edits
    assert edit.path == ROOT
    # Once more changes nothing.
    assert plan_present(request, node(edit.after, made), tomllib.loads).edits == ()
    # Nothing but what the edit names has another meaning.
    before, after = tomllib.loads(made.text), tomllib.loads(edit.after)
    for change in edit.changes:
        remove(before, change.path)
        remove(after, change.path)
    assert prune(before) == prune(after)
    # Lines of which nothing was to change are there, in their order.
    changed = {change.path[-1].lower() for change in edit.changes if change.before}
    kept = [
        line
        for line in lines_of(made.text)
        if not any(word in line.lower() for word in (*changed, "options")) and line[0] != "["
    ]
    assert is_part(kept, lines_of(edit.after))
    # And every byte comes back.
    history = {ROOT: History(edit.before, edit.after, edit.changes)}
    gone = Request(**{**wishes, "state": "absent"})
    (undone,) = plan_absent(gone, node(edit.after, made), history, tomllib.loads, True).edits
    assert undone.after == made.text


@examples(800)
@given(
    daemon_configs(),
    st.booleans(),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, ("--debug",)]),
)
def test_docker(text, default, cdi, arguments):
    path = "/usr/bin/nvidia-container-runtime"
    wish = docker.Request("nvidia", True, path, arguments, default, cdi)
    version = (28, 5, 2)
    before = docker.read(text, "daemon.json", version)
    once = docker.configure(before, wish, docker.Ledger(), version)
    docker.verify(before, once.document, "nvidia")
    after = docker.read(once.document.text, "daemon.json", version)
    again = docker.configure(after, wish, once.ledger, version)
    assert again.document.text == once.document.text
    old = json.loads(text.lstrip("\ufeff").strip() or "null") or {}
    new = json.loads(once.document.text.lstrip("\ufeff"))
    assert new["runtimes"].pop("nvidia")["path"] == path
    for key in ("default-runtime", "features", "runtimes"):
        one, other = old.pop(key, None) or {}, new.pop(key, None) or {}
        if key == "default-runtime":
            assert other == ("nvidia" if default else one)
        else:
            assert {k: v for k, v in other.items() if k != "cdi"} == one
    assert (new, list(new)) == (old, list(old))
    gone = docker.Request("nvidia", False, path, arguments, False, None)
    left = docker.remove(again.document, gone, again.ledger).document.text
    if text.strip("\ufeff\n") in ("", "null"):
        # No object: what is left of ours says nothing either. (As bytes it is what it was.)
        assert not json.loads(left)
    else:
        assert left == text
