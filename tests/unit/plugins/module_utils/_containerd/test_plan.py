# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans of a runtime handler: edits from request and state. No file, no process."""

from __future__ import annotations

import tomllib

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.config import Effective
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.plan import plan_present
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import (
    Change,
    Request,
    State,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.config_file import ConfigFile

ROOT = "/etc/containerd/config.toml"
DROP_IN = "/etc/containerd/conf.d/99-nvidia.toml"
V2 = 'plugins."io.containerd.grpc.v1.cri"'
V3 = 'plugins."io.containerd.cri.v1.runtime"'
RUNC = 'runtime_type = "io.containerd.runc.v2"\n'


def file(path, text):
    return ConfigFile(path, text, tomllib.loads(text or ""))


def node(text, version=(1, 7), imported=None, drop_in=None, **more):
    files = (file(ROOT, text), *(file(path, text) for path, text in (imported or {}).items()))
    return State(version=version, files=files, drop_in=file(DROP_IN, drop_in), **more)


def plan(here, **options):
    return plan_present(Request(**options), here, tomllib.loads)


def handler(text, table="io.containerd.grpc.v1.cri", name="nvidia"):
    return tomllib.loads(text)["plugins"][table]["containerd"]["runtimes"][name]


def only(planned):
    (edit,) = planned.edits
    return edit


def test_handler_takes_over_all_of_runc_but_its_binary():
    text = (
        f"version = 2\n[{V2}.containerd.runtimes.runc]\n{RUNC}"
        'snapshotter = "stargz"\ncni_conf_dir = ""\n'
        f"[{V2}.containerd.runtimes.runc.options]\n"
        'binaryName = "/usr/bin/crun"\nSystemdCgroup = true\nRoot = "/run/runc"\n'
    )
    assert handler(only(plan(node(text))).after) == {
        "runtime_type": "io.containerd.runc.v2",
        "snapshotter": "stargz",
        "options": {
            "BinaryName": "/usr/bin/nvidia-container-runtime",
            "SystemdCgroup": True,
            "Root": "/run/runc",
        },
    }


@pytest.mark.parametrize("kind", ["io.containerd.kata.v2", "io.containerd.runsc.v1"])
def test_handler_takes_nothing_over_from_a_sandbox(kind):
    text = (
        f'version = 2\n[{V2}.containerd]\ndefault_runtime_name = "box"\n'
        f'[{V2}.containerd.runtimes.box]\nruntime_type = "{kind}"\nsnapshotter = "box"\n'
        f'[{V2}.containerd.runtimes.box.options]\nConfigPath = "/box"\n'
    )
    planned = plan(node(text))
    assert handler(only(planned).after) == {
        "runtime_type": "io.containerd.runc.v2",
        "options": {"BinaryName": "/usr/bin/nvidia-container-runtime"},
    }
    assert any("no runc runtime" in warning for warning in planned.warnings)


def test_missing_runc_gets_the_cgroup_driver_of_the_others():
    """Found by tests/unit/properties: the handler had crun's, runc none."""
    text = (
        f"version = 2\n[{V2}.containerd.runtimes.crun]\n{RUNC}"
        f"[{V2}.containerd.runtimes.crun.options]\nSystemdCgroup = true\n"
    )
    after = only(plan(node(text))).after
    assert handler(after, name="runc")["options"] == {"SystemdCgroup": True}
    assert plan(node(after)).edits == ()


def test_crun_as_default_is_inherited_where_there_is_no_runc():
    text = (
        f'version = 2\n[{V2}.containerd]\ndefault_runtime_name = "crun"\n'
        f"[{V2}.containerd.runtimes.crun]\n{RUNC}"
        f"[{V2}.containerd.runtimes.crun.options]\n"
        'BinaryName = "/usr/bin/crun"\nSystemdCgroup = true\n'
    )
    assert handler(only(plan(node(text))).after)["options"] == {
        "BinaryName": "/usr/bin/nvidia-container-runtime",
        "SystemdCgroup": True,
    }


CRUN = (
    f"[{{table}}.containerd.runtimes.crun]\n{RUNC}"
    "[{table}.containerd.runtimes.crun.options]\n"
    'BinaryName = "/usr/bin/crun"\nSystemdCgroup = true\n'
)


def default_crun(table, version, runc):
    return (
        f'version = {version}\n[{table}.containerd]\ndefault_runtime_name = "crun"\n'
        + CRUN.format(table=table)
        + runc.format(table=table)
    )


NO_CGROUP = f"[{{table}}.containerd.runtimes.runc]\n{RUNC}"


@pytest.mark.parametrize(
    ("containerd", "table", "version", "runc", "warned"),
    [
        ((1, 6), V2, 2, NO_CGROUP, True),
        ((1, 7), V2, 2, NO_CGROUP, True),
        ((2, 1), V3, 3, NO_CGROUP, True),
        ((2, 1), V3, 3, "", False),
    ],
)
def test_options_are_those_of_the_default_runtime(containerd, table, version, runc, warned):
    """Ordinary pods are started by it, so that its options suit the kubelet.

    nvidia-ctk 1.20.0 does the same: pkg/config/engine, GetLowLevelRuntimes (default, runc, crun).
    """
    runtimes = {"runc": {"runtime_type": "io.containerd.runc.v2", "options": {}}}
    text = default_crun(table, version, runc)
    known = tomllib.loads(text)["plugins"]
    (name,) = known
    known[name]["containerd"]["runtimes"] = {**runtimes, **known[name]["containerd"]["runtimes"]}
    planned = plan(node(text, containerd, effective=Effective({"plugins": known})))
    assert handler(only(planned).after, name)["options"] == {
        "BinaryName": "/usr/bin/nvidia-container-runtime",
        "SystemdCgroup": True,
    }
    assert planned.source == "crun"
    told = [one for one in (*planned.warnings, *planned.reasons) if "runc has others" in one]
    assert told and "systemdcgroup" in told[0]
    assert bool(planned.warnings) is warned


def test_options_stay_those_of_the_default_from_before_us():
    text = default_crun(V2, 2, NO_CGROUP)
    first = only(plan(node(text), set_default=True))
    for options in ({"set_default": True}, {"name": "second"}):
        planned = plan(node(first.after, all_changes=first.changes), **options)
        assert planned.source == "crun"
        assert "second" in options.get("name", "") or planned.edits == ()


def test_options_stay_those_of_the_default_that_the_drop_in_file_overrides():
    """The drop-in file had no default before; the root file still has the original one."""
    text = default_crun(V3, 3, NO_CGROUP)
    first = plan(node(text, (2, 1)), layout="drop_in", set_default=True)
    (root,) = (edit for edit in first.edits if edit.path == ROOT)
    (own,) = (edit for edit in first.edits if edit.path == DROP_IN)
    changes = tuple(change for edit in first.edits for change in edit.changes)
    there = node(root.after, (2, 1), {DROP_IN: own.after}, own.after, all_changes=changes)
    again = plan(there, layout="drop_in", set_default=True)
    assert (again.edits, again.source) == ((), "crun")


def test_options_are_runcs_where_the_default_is_nvidias():
    text = (
        f'version = 2\n[{V2}.containerd]\ndefault_runtime_name = "gpu"\n'
        + NO_CGROUP.format(table=V2)
        + f"[{V2}.containerd.runtimes.gpu]\n{RUNC}[{V2}.containerd.runtimes.gpu.options]\n"
        'BinaryName = "/usr/local/nvidia/nvidia-container-runtime.cdi"\nNoPivotRoot = true\n'
    )
    planned = plan(node(text))
    assert planned.source == "runc"
    assert handler(only(planned).after)["options"] == {
        "BinaryName": "/usr/bin/nvidia-container-runtime"
    }


# As many guides have it; containerd 1.6 and 1.7 start no pod with it.
TYPELESS = f"version = 2\n[{V2}.containerd.runtimes.runc.options]\nSystemdCgroup = true\n"
EMPTY_TYPE = (
    f'version = 3\n[{V3}.containerd.runtimes.runc]\nruntime_type = ""\n'
    f"[{V3}.containerd.runtimes.runc.options]\nSystemdCgroup = true\n"
)


def typeless_dump(text):
    data = tomllib.loads(text)
    (cri,) = data["plugins"].values()
    cri["containerd"]["runtimes"]["runc"]["runtime_type"] = ""
    return Effective(data)


@pytest.mark.parametrize(
    ("text", "version"),
    [(TYPELESS, (1, 6)), (TYPELESS, (1, 7)), (EMPTY_TYPE, (2, 1)), (EMPTY_TYPE, (2, 3))],
)
@pytest.mark.parametrize("asked", [True, False])
def test_runc_without_a_type_is_named_as_the_cause_or_completed(text, version, asked):
    here = node(text, version, effective=typeless_dump(text) if asked else None)
    with pytest.raises(KubegpuError, match=r"runc has no runtime_type.*starts no pod") as caught:
        plan(here)
    assert ROOT in caught.value.evidence and "complete_runc" in caught.value.next_step
    after = only(plan(here, complete_runc=True)).after
    table = "io.containerd.cri.v1.runtime" if text == EMPTY_TYPE else "io.containerd.grpc.v1.cri"
    assert handler(after, table, "runc")["runtime_type"] == "io.containerd.runc.v2"
    assert handler(after, table)["options"]["SystemdCgroup"] is True


def test_type_that_is_built_in_is_not_missing():
    """containerd 2 merges the file over its own runc."""
    text = f"version = 3\n[{V3}.containerd.runtimes.runc.options]\nSystemdCgroup = true\n"
    after = only(plan(node(text, (2, 1)))).after
    name = "io.containerd.cri.v1.runtime"
    assert handler(after, name)["options"]["SystemdCgroup"] is True
    assert "runtime_type" not in handler(after, name, "runc")


def test_default_without_a_type_is_named_too():
    text = (
        f'version = 2\n[{V2}.containerd]\ndefault_runtime_name = "crun"\n'
        f'[{V2}.containerd.runtimes.crun.options]\nBinaryName = "/usr/bin/crun"\n'
        + NO_CGROUP.format(table=V2)
    )
    with pytest.raises(KubegpuError, match="crun has no runtime_type") as caught:
        plan(node(text), complete_runc=True)
    assert "complete_runc" not in caught.value.next_step


def test_handler_that_is_right_is_left_alone():
    text = (
        f"version = 2\n[{V2}.containerd.runtimes.runc]\n{RUNC}"
        f"[{V2}.containerd.runtimes.nvidia]\n{RUNC}pod_annotations = ['mine']\n"
        f"[{V2}.containerd.runtimes.nvidia.options]\n"
        'binaryname = "/usr/bin/nvidia-container-runtime"\n'
    )
    assert plan(node(text)).edits == ()


def test_only_what_differs_in_a_handler_is_changed():
    text = (
        f"version = 2\n[{V2}.containerd.runtimes.runc]\n{RUNC}"
        f"[{V2}.containerd.runtimes.nvidia]\n{RUNC}snapshotter = 'mine' # keep\n"
        f"[{V2}.containerd.runtimes.nvidia.options]\n"
        'BinaryName = "/old" # why\nSystemdCgroup = true\nRoot = "/mine"\n'
    )
    planned = plan(node(text))
    assert only(planned).after == text.replace(
        '"/old"', '"/usr/bin/nvidia-container-runtime"'
    ).replace("SystemdCgroup = true", "SystemdCgroup = false")
    assert len(planned.reasons) == 2


@pytest.mark.parametrize(
    ("version", "text", "table"),
    [
        ((1, 6), "oom_score = 0\n", "cri"),
        ((1, 7), "version = 2\n", "io.containerd.grpc.v1.cri"),
        ((2, 0), "version = 2\n", "io.containerd.grpc.v1.cri"),
        ((2, 1), "version = 3\n", "io.containerd.cri.v1.runtime"),
        ((2, 3), "version = 4\n", "io.containerd.cri.v1.runtime"),
        # containerd 2 ignores plugins.cri in a file without a version
        ((2, 1), "oom_score = 0\n", "io.containerd.cri.v1.runtime"),
        ((1, 7), None, "io.containerd.grpc.v1.cri"),
        ((2, 1), None, "io.containerd.cri.v1.runtime"),
        ((2, 1), "# nothing\n", "io.containerd.cri.v1.runtime"),
    ],
)
def test_table_of_each_version(version, text, table):
    data = tomllib.loads(only(plan(node(text, version))).after)
    assert list(data["plugins"]) == [table]
    runtimes = data["plugins"][table]["containerd"]["runtimes"]
    assert set(runtimes) == ({"runc", "nvidia"} if version < (2, 0) else {"nvidia"})


@pytest.mark.parametrize(
    ("version", "layout", "imports", "path"),
    [
        ((2, 1), "auto", True, DROP_IN),
        ((2, 1), "auto", False, ROOT),
        ((2, 1), "in_place", True, ROOT),
        ((2, 0), "auto", True, ROOT),
        ((1, 7), "auto", True, ROOT),
    ],
)
def test_layout(version, layout, imports, path):
    text = "version = 2\n"
    if imports:
        text = 'imports = ["/etc/containerd/conf.d/*.toml"]\n' + text
    text += f"[{V2}.containerd.runtimes.runc]\n{RUNC}"
    edit = only(plan(node(text, version), layout=layout))
    assert edit.path == path
    assert tomllib.loads(edit.after)["version"] == 2


V4 = """\
version = 4

[plugins."io.containerd.server.v1.grpc"]
  address = "/run/containerd/containerd.sock"

[plugins."io.containerd.server.v1.ttrpc"]
  address = "/run/containerd/containerd.sock.ttrpc"
"""


def test_config_version_4_keeps_its_servers_and_its_version():
    """The servers' tables are those of containerd's docs/man/containerd-config.toml.5.md (2.3)."""
    before = V4 + f"\n[{V3}.containerd.runtimes.runc]\n{RUNC}"
    edit = only(plan(node(before, (2, 3))))
    assert edit.after.startswith(before)
    assert handler(edit.after, "io.containerd.cri.v1.runtime")["options"]
    assert tomllib.loads(edit.after)["version"] == 4
    imports = 'imports = ["/etc/containerd/conf.d/*.toml"]\n'
    drop_in = only(plan(node(imports + before, (2, 3))))
    assert (drop_in.path, tomllib.loads(drop_in.after)["version"]) == (DROP_IN, 4)


def test_new_file_is_one_that_every_containerd_2_loads():
    assert tomllib.loads(only(plan(node(None, (2, 3)))).after)["version"] == 3


def test_builtin_imports_of_newer_releases_allow_a_drop_in():
    builtin = ("/etc/containerd/conf.d/*.toml",)
    here = node("version = 3\n", (2, 2), builtin_imports=builtin)
    assert only(plan(here)).path == DROP_IN
    own = node("version = 3\nimports = []\n", (2, 2), builtin_imports=builtin)
    assert only(plan(own)).path == ROOT


def test_explicit_drop_in_is_imported_by_one_line_and_written_first():
    text = f"# mine\nversion = 3\n\n[{V3}.containerd.runtimes.runc]\n{RUNC}"
    first, second = plan(node(text, (2, 1)), layout="drop_in").edits
    assert (first.path, second.path) == (DROP_IN, ROOT)
    assert second.after == text.replace("3\n", f'3\nimports = ["{DROP_IN}"]\n', 1)


def test_last_file_with_the_cri_table_is_edited_on_old_releases():
    imported = {
        "/etc/a.toml": f"version = 2\n[{V2}.containerd.runtimes.runc]\n{RUNC}",
        "/etc/b.toml": "version = 2\n[debug]\nlevel = 'info'\n",
    }
    text = f"version = 2\nimports = ['/etc/a.toml', '/etc/b.toml']\n[{V2}]\nx = 1\n"
    planned = plan(node(text, (1, 6), imported))
    assert only(planned).path == "/etc/a.toml"
    assert any("replaces" in reason for reason in planned.reasons)
    # The merge of 2.1 leaves the choice, and then it is the admin's root file.
    assert only(plan(node(text, (2, 1), imported), layout="in_place")).path == ROOT


def test_imported_file_of_another_version_is_not_edited():
    imported = {"/etc/a.toml": f"[plugins.cri]\n[{V2}]\nx = 1\n"}
    with pytest.raises(KubegpuError, match="does not read the two together"):
        plan(node("version = 2\n", (1, 7), imported))


@pytest.mark.parametrize(
    ("version", "config", "words"),
    [
        ((1, 7), 3, "reads 1 to 2"),
        ((2, 2), 4, "reads 1 to 3"),
        ((2, 3), 5, "does not know"),
        ((1, 6), 5, "does not know"),
    ],
)
def test_config_versions_that_cannot_work_are_refused(version, config, words):
    with pytest.raises(KubegpuError, match=words):
        plan(node(f"version = {config}\n", version))


def test_default_goes_where_it_takes_effect():
    imported = {"/etc/z.toml": f'version = 3\n[{V3}.containerd]\ndefault_runtime_name = "runc"\n'}
    text = "version = 3\nimports = ['/etc/z.toml']\n"
    planned = plan(node(text, (2, 1), imported), set_default=True, layout="in_place")
    by_path = {edit.path: edit.after for edit in planned.edits}
    assert 'default_runtime_name = "nvidia"' in by_path["/etc/z.toml"]
    assert "default_runtime_name" not in by_path[ROOT]


def test_default_of_somebody_else_is_left_alone_but_ours_is_taken_back():
    text = (
        f'version = 2\n[{V2}.containerd]\ndefault_runtime_name = "nvidia"\n'
        f"[{V2}.containerd.runtimes.runc]\n{RUNC}[{V2}.containerd.runtimes.nvidia]\n{RUNC}"
        f"[{V2}.containerd.runtimes.nvidia.options]\n"
        'BinaryName = "/usr/bin/nvidia-container-runtime"\n'
    )
    assert plan(node(text)).edits == ()
    path = ("plugins", "io.containerd.grpc.v1.cri", "containerd", "default_runtime_name")
    for before, line in (
        (("crun",), 'default_runtime_name = "crun"\n'),
        ((), ""),
    ):
        ours = {ROOT: (Change(path, before, ("nvidia",)),)}
        edit = only(plan(node(text, handler_changes=ours)))
        assert edit.after == text.replace('default_runtime_name = "nvidia"\n', line)


def test_deprecated_default_table_is_not_silently_the_winner():
    text = f"version = 2\n[{V2}.containerd.default_runtime]\n{RUNC}"
    with pytest.raises(KubegpuError, match="deprecated table"):
        plan(node(text), set_default=True)


@pytest.mark.parametrize(
    ("version", "text", "cdi", "line"),
    [
        ((1, 6), "version = 2\n", True, None),
        ((1, 7), "version = 2\n", True, "enable_cdi = true"),
        ((1, 7), "version = 2\n", False, None),
        ((2, 1), "version = 3\n", True, None),
        ((2, 1), "version = 3\n", False, "enable_cdi = false"),
        ((2, 1), f"version = 3\n[{V3}]\nenable_cdi = false\n", True, "enable_cdi = true"),
        ((2, 1), f"version = 3\n[{V3}]\nenable_cdi = false\n", None, "enable_cdi = false"),
    ],
)
def test_cdi(version, text, cdi, line):
    after = only(plan(node(text, version), cdi=cdi)).after
    lines = [one.strip() for one in after.splitlines() if "cdi" in one]
    assert lines == ([line] if line else [])


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('disabled_plugins = ["cri"]\n', "disabled_plugins = []"),
        (
            'version = 2\ndisabled_plugins = ["a.b.v1.c", "io.containerd.grpc.v1.cri"] # x\n',
            'disabled_plugins = ["a.b.v1.c"] # x',
        ),
    ],
)
def test_cri_is_enabled_only_on_request(text, after):
    planned = plan(node(text))
    assert any("CRI is disabled" in warning for warning in planned.warnings)
    assert after not in only(planned).after
    enabled = plan(node(text), enable_cri=True)
    assert after in only(enabled).after.splitlines()
    assert not enabled.warnings
