# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rows of the table."""

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.verification import rows


def entries(name, **oks):
    return [
        {"node": name, "layer": layer, "ok": ok, "cause": "" if ok else f"{layer} is bad.",
         "evidence": "e", "next_step": "Do it.", "proof": "seen" if ok else ""}
        for layer, ok in oks.items()
    ]  # fmt: skip


def test_rows_of_the_table():
    given = [
        *entries("b", pod=False, pci=True, module=True),
        *entries("a", pci=True, module=None),
    ]
    first, second, lost = rows(given, ["a", "b", "lost"], ("pci", "module", "pod"))
    assert (first["node"], first["pci"], first["module"], first["pod"]) == (
        "a", "ok", "not tried", None,
    )  # fmt: skip
    assert (first["result"], first["failed"], first["causes"]) == ("ok", False, [])
    assert first["not_tried"] == ["module: module is bad."]
    assert first["proof"] == ["pci: seen"]
    assert (second["pod"], second["result"], second["failed"]) == ("failed", "failed", True)
    assert second["causes"] == ["pod: pod is bad.\nSeen: e\nNext step: Do it."]
    assert [one["layer"] for one in second["layers"]] == ["pci", "module", "pod"]
    assert (lost["failed"], lost["causes"]) == (True, ["the node could not be read"])


def test_a_node_that_only_the_cluster_knows_has_a_row():
    (row,) = rows(entries("worker-9", allocatable=False))
    assert (row["node"], row["allocatable"], row["pci"]) == ("worker-9", "failed", None)


def test_of_two_runtimes_the_worse_one_is_shown_and_an_idle_one_is_not():
    one, two = entries("a", runtime=True) + entries("a", runtime=None)
    (row,) = rows([{**one, "subject": "containerd"}, {**two, "subject": "docker"}])
    assert row["runtime"] == "ok"
    assert row["not_tried"] == ["runtime (docker): runtime is bad."]
    (row,) = rows([one, {**two, "ok": False, "subject": "docker"}])
    assert row["runtime"] == "failed"
    assert row["causes"][0].startswith("runtime (docker): ")


def test_a_cluster_that_cannot_be_asked_has_a_row_and_is_no_fault_of_a_node():
    first, second = entries("a", allocatable=False) + entries("b", allocatable=None)
    first = {**first, "code": "cluster_not_asked", "cause": "The kubeconfig /x does not exist"}
    second = {**second, "code": "waits", "cause": "The cluster could not be asked."}
    given = [first, second, *entries("a", pci=True), *entries("b", pci=True)]
    one, two, cluster = rows(given, ["a", "b"], ("pci", "allocatable", "pod"))
    for row in (one, two):
        assert (row["allocatable"], row["result"], row["notes"]) == ("not tried", "ok", [])
    assert (cluster["node"], cluster["pci"], cluster["allocatable"]) == ("cluster", None, "failed")
    assert cluster["failed"] and cluster["notes"] == [
        "The kubeconfig /x does not exist\nSeen: e\nNext step: Do it."
    ]
    # An upgrade and a diagnosis read why from the host.
    assert [layer["code"] for layer in one["layers"] if layer["ok"] is False] == [
        "cluster_not_asked"
    ]
