# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both editors over made configurations of every version; ``tomllib`` and ``json`` are the oracles.

``absent(present(x)) == x``, ``present(present(x)) == present(x)``, and nothing else changed; what
somebody else wrote in between stays. Where the real engines judge the same:
tests/integration/engines/test_properties.py.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.plan import plan_present
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.record import HandlerRecord
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import Request, State
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.undo import plan_absent
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.values import (
    merge,
    prune,
    remove,
    value_at,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker import config as docker
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.record import Record
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.types import (
    Request as DockerRequest,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.config_file import ConfigFile
from tests.unit.engine_documents import CRI, containerd_configs, daemon_configs, examples

ROOT = "/etc/containerd/config.toml"
DROP_IN = "/etc/containerd/conf.d/99-nvidia.toml"
WISHES = st.fixed_dictionaries(
    {},
    optional={
        "set_default": st.booleans(),
        "cdi": st.booleans(),
        "name": st.sampled_from(["nvidia", "gpu-2"]),
        "options": st.sampled_from([{}, {"NoNewKeyring": True}, {"SystemdCgroup": False}]),
    },
)
# Somebody else's lines, whether they are a table of its own, and where they stand.
FOREIGN = st.tuples(
    st.sampled_from(
        [
            (["# somebody's [own] = note"], False),
            (["", "# first", "", "  # second"], False),
            (["[proxy_plugins.theirs]", '  type = "snapshot"'], True),
            (["[{cri}.containerd.runtimes.theirs]", "runtime_type = 'their.v1'"], True),
        ]
    ),
    st.integers(0, 99),
)


def node(text, made, drop_in=None, every=()):
    root = ConfigFile(ROOT, text, tomllib.loads(text))
    own = ConfigFile(DROP_IN, drop_in, tomllib.loads(drop_in or ""))
    files = (root,) if drop_in is None else (root, own)
    return State(made.containerd, files, own, all_changes=every)


def lines_of(text):
    """Return the lines that hold something of somebody's."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def is_part(few, many):
    """Return whether ``few`` is in ``many`` in this order."""
    rest = iter(many)
    return all(item in rest for item in few)


def put_in(text, foreign, made):
    """Return the text with somebody else's edit at one of the places where it may stand."""
    (lines, whole), place = foreign
    newline = "\r\n" if "\r\n" in text else "\n"
    own = [line.format(cri=f'plugins."{CRI[made.version]}"') + newline for line in lines]
    there = text.splitlines(keepends=True)
    places = [
        index
        for index in range(len(there) + 1)
        # The keys below a header are those of its table.
        if not whole or index == len(there) or there[index].lstrip().startswith("[")
    ]
    at = places[place % len(places)]
    if at == len(there) and there and not there[-1].endswith("\n"):
        there[-1] += newline
    return "".join([*there[:at], *own, *there[at:]]), "".join(own)


def check_foreign(left, text, own):
    """See that ``text`` and somebody's edit ``own`` are there, and nothing else."""
    wanted = merge(tomllib.loads(text), tomllib.loads(own))
    assert prune(tomllib.loads(left)) == prune(wanted)

    def lines(of):
        # What is put back by its meaning may have other quotes, or be an inline table anew.
        return [line.replace("'", '"') for line in lines_of(of) if "{" not in line]

    assert is_part(lines(text), lines(left))
    assert is_part(lines(own), lines(left))
    # By meaning an empty header of ours may stay.
    more = Counter(lines(left)) - Counter(lines(text) + lines(own))
    assert all(line.startswith("[") for line in more)


@examples(1000)
@given(containerd_configs(), WISHES, FOREIGN)
def test_containerd(made, wishes, foreign):
    request = Request(**wishes, layout="in_place")
    edits = plan_present(request, node(made.text, made), tomllib.loads).edits
    if not edits:
        return
    (edit,) = edits
    assert edit.path == ROOT
    # Once more changes nothing.
    recorded = node(edit.after, made, every=edit.changes)
    assert plan_present(request, recorded, tomllib.loads).edits == ()
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
    history = {ROOT: HandlerRecord(edit.before, edit.after, edit.changes)}
    gone = replace(request, state="absent")
    (undone,) = plan_absent(gone, node(edit.after, made), history, tomllib.loads, True).edits
    assert undone.after == made.text
    # What somebody else wrote in the meantime stays.
    edited, own = put_in(edit.after, foreign, made)
    (undone,) = plan_absent(gone, node(edited, made), history, tomllib.loads, True).edits
    check_foreign(undone.after, made.text, own)


@examples(250)
@given(containerd_configs(), WISHES)
def test_containerd_without_a_record(made, wishes):
    """Then only what equals ours is ours: the handler, and a default that names it."""
    request = Request(**wishes, layout="in_place")
    edits = plan_present(request, node(made.text, made), tomllib.loads).edits
    text = edits[0].after if edits else made.text
    cri = node(text, made).cri
    handler = (*cri, "containerd", "runtimes", request.name)
    default = (*cri, "containerd", "default_runtime_name")
    gone = replace(request, state="absent")
    undone = plan_absent(gone, node(text, made), {}, tomllib.loads).edits
    left = undone[0].after if undone else text
    before, after, rest = (tomllib.loads(one) for one in (made.text, text, left))
    if value_at(before, handler) and not undone:
        # It was somebody's own, and still is not as we write one.
        return
    assert value_at(rest, handler) == ()
    remove(after, handler)
    if value_at(after, default) == (request.name,):
        remove(after, default)
    assert prune(rest) == prune(after)
    # So it is what it was, but for what no one could tell from the admin's own.
    for path in {handler, default, *(change.path for edit in edits for change in edit.changes)}:
        remove(before, path)
        remove(rest, path)
    assert prune(rest) == prune(before)
    assert is_part([line for line in lines_of(left) if line[0] == "#"], lines_of(text))


@examples(250)
@given(containerd_configs(), WISHES, st.none() | FOREIGN)
def test_containerd_in_a_file_of_its_own(made, wishes, foreign):
    request = Request(**wishes, layout="drop_in")
    before = node(made.text, made)
    try:
        edits = plan_present(request, before, tomllib.loads).edits
    except KubegpuError:
        # It would replace the root file's whole table.
        assert not before.deep_merge and before.defining(())
        return
    texts = {ROOT: made.text, **{edit.path: edit.after for edit in edits}}
    assert set(texts) <= {ROOT, DROP_IN}
    every = tuple(change for edit in edits for change in edit.changes)
    after = node(texts[ROOT], made, texts.get(DROP_IN), every)
    assert plan_present(request, after, tomllib.loads).edits == ()
    own = ""
    if foreign is not None:
        texts[ROOT], own = put_in(texts[ROOT], foreign, made)
        after = node(texts[ROOT], made, texts.get(DROP_IN))
    handler_records = {
        edit.path: HandlerRecord(edit.before, edit.after, edit.changes) for edit in edits
    }
    gone = replace(request, state="absent")
    undone = plan_absent(gone, after, handler_records, tomllib.loads, True).edits
    left = {**texts, **{edit.path: edit.after for edit in undone}}
    assert left.get(DROP_IN) is None
    if foreign is None:
        assert left[ROOT] == made.text
    else:
        check_foreign(left[ROOT], made.text, own)


@examples(800)
@given(
    daemon_configs(),
    st.booleans(),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, ("--debug",)]),
)
def test_docker(text, default, cdi, arguments):
    path = "/usr/bin/nvidia-container-runtime"
    wish = DockerRequest("nvidia", True, path, arguments, default, cdi)
    version = (28, 5, 2)
    before = docker.read(text, "daemon.json", version)
    once = docker.configure(before, wish, Record(), version)
    docker.verify(before, once.document, "nvidia")
    after = docker.read(once.document.text, "daemon.json", version)
    again = docker.configure(after, wish, once.record, version)
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
    gone = DockerRequest("nvidia", False, path, arguments, False, None)
    left = docker.remove(again.document, gone, again.record).document.text
    if text.strip("\ufeff\n") in ("", "null"):
        # No object: what is left of ours says nothing either. (As bytes it is what it was.)
        assert not json.loads(left)
    else:
        assert left == text
