# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The toolkit's plan: one row a situation, and what has to come out."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.versions import package_numbers
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository.addresses import (
    same_repository,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.plan import plan_toolkit
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.types import (
    Request,
)
from tests.unit.fixtures.crio import configured, packaged
from tests.unit.fixtures.node_facts import installed, node

OFFICIAL = "https://nvidia.github.io/libnvidia-container/stable/deb"
KEY = "C95B321B61E88C1809C4F759DDCAE044F796ECB0"


def steps(plan):
    return [(step.step, step.action) for step in plan.steps]


def entry(uri=OFFICIAL, key=KEY, file="/etc/apt/sources.list.d/a.list", enabled=True):
    return {"file": file, "uri": uri, "key_fingerprint": key, "signed_by": None, "enabled": enabled}


def test_bare_node_gets_everything_in_order():
    plan = plan_toolkit(node(), Request())
    assert plan.action == "install"
    assert steps(plan) == [
        ("repository", "add"),
        ("packages", "install"),
        ("containerd", "add"),
        ("docker", "add"),
        ("docker", "restart"),
    ]
    assert set(plan.packages.values()) == {"1.20.1-1"}
    assert len(plan.packages) == 4
    assert plan.repository["url"] == OFFICIAL
    assert plan.repository["key_fingerprints"] == [KEY]
    assert all(step.reason for step in plan.steps)


def test_finished_node_gets_nothing():
    plan = plan_toolkit(installed(), Request())
    assert (plan.action, steps(plan), plan.repository, plan.cdi) == ("none", [], None, None)
    assert not plan.change_packages
    assert plan.containerd and plan.docker


def converged(**request):
    """Facts of a node whose runtimes' modules found nothing to do for this request."""
    facts = installed()
    for engine, name in plan_toolkit(facts, Request(**request)).fingerprints.items():
        facts["runtimes"][engine]["converged"] = {"nvidia": name}
    return facts


def test_converged_runtimes_need_no_call():
    plan = plan_toolkit(converged(), Request())
    assert (plan.containerd, plan.docker, plan.converged) == (
        False,
        False,
        ("containerd", "docker"),
    )
    # What the record does not tell, the module has to.
    facts = converged()
    facts["runtimes"]["docker"]["converged"] = None
    plan = plan_toolkit(facts, Request())
    assert (plan.containerd, plan.docker, plan.converged) == (False, True, ("containerd",))


@pytest.mark.parametrize(
    ("options", "called"),
    [
        ({"containerd_options": {"Debug": True}}, ["containerd"]),
        ({"containerd_restart": False}, ["containerd"]),
        ({"containerd_enable_cri": True}, ["containerd"]),
        ({"docker_restart": "never"}, ["docker"]),
        ({"runtime_cdi": True}, ["containerd", "docker"]),
        ({"docker_set_default": True}, ["docker"]),
        ({"containerd_set_default": True}, ["containerd"]),
        ({"runtime_name": "gpu"}, ["containerd", "docker"]),
        # What changes below the runtimes is for their modules to see.
        ({"version": "1.19.0"}, ["containerd", "docker"]),
        ({"settings": {"swarm-resource": "x"}}, ["containerd", "docker"]),
        # Switched off is not converged.
        ({"docker": "false"}, []),
        ({"hold": True}, []),
    ],
)
def test_converged_is_for_one_request(options, called):
    plan = plan_toolkit(converged(), Request(**options))
    assert [name for name in ("containerd", "docker") if getattr(plan, name)] == called
    expected = [] if options.get("version") or options.get("settings") else ["containerd", "docker"]
    off = [name for name in ("containerd", "docker") if options.get(name) == "false"]
    assert list(plan.converged) == [one for one in expected if one not in called + off]


def test_node_without_nvidia_gpu_is_left_alone():
    plan = plan_toolkit(node(gpus=[]), Request())
    assert plan.action == "none"
    assert not plan.containerd and not plan.docker and not plan.steps


def test_no_version_keeps_what_is_installed():
    plan = plan_toolkit(installed("1.17.8-1"), Request())
    assert (plan.action, plan.version, steps(plan)) == ("none", "1.17.8-1", [])


@pytest.mark.parametrize(
    ("present", "requested", "action", "version"),
    [
        ("1.17.8-1", "1.20.0", "upgrade", "1.20.0-1"),
        ("1.20.0-1", "1.19.0", "downgrade", "1.19.0-1"),
        ("1.9.0-1", "1.20.0-1", "upgrade", "1.20.0-1"),
        ("1.20.0-1", "1.20.0", "none", "1.20.0-1"),
    ],
)
def test_requested_version(present, requested, action, version):
    plan = plan_toolkit(installed(present), Request(version=requested))
    assert (plan.action, plan.version) == (action, version)
    assert plan.change_packages is (action != "none")


def test_set_of_mixed_versions_becomes_one():
    facts = installed("1.20.0-1")
    facts["container_toolkit"]["packages"]["libnvidia-container1"] = "1.19.0-1"
    plan = plan_toolkit(facts, Request())
    assert (plan.action, plan.version) == ("upgrade", "1.20.0-1")


@pytest.mark.parametrize(
    ("held", "requested", "verb"), [(False, True, "hold"), (True, False, "unhold")]
)
def test_hold_is_repaired_alone(held, requested, verb):
    plan = plan_toolkit(installed(container_toolkit__held=held), Request(hold=requested))
    assert (plan.action, steps(plan)) == ("none", [("packages", verb)])
    assert plan.change_packages


def test_nvidia_docker2_is_replaced():
    facts = installed(container_toolkit__obsolete_packages={"nvidia-docker2": "2.14.0-1"})
    plan = plan_toolkit(facts, Request())
    assert plan.obsolete == ("nvidia-docker2",)
    assert steps(plan) == [("packages", "remove")]


class TestRepository:
    def test_trusted_entry_in_another_file_is_kept(self):
        plan = plan_toolkit(installed(repositories=[entry()]), Request())
        assert plan.repository is None

    @pytest.mark.parametrize(
        ("entries", "words"),
        [
            ([entry(key=None)], "no key of its own"),
            ([entry(key="A" * 40)], "A" * 40),
            ([entry(), entry(file="/etc/apt/sources.list.d/b.sources")], "more than one"),
            ([entry("https://nvidia.github.io/nvidia-docker/debian10")], "nvidia-docker"),
        ],
    )
    def test_other_entries_are_replaced_and_the_reason_says_why(self, entries, words):
        plan = plan_toolkit(installed(repositories=entries), Request())
        assert steps(plan) == [("repository", "replace")]
        assert words in plan.steps[0].reason
        # The same words on nodes of every package manager.
        assert " apt " not in plan.steps[0].reason

    def test_disabled_entry_does_not_count(self):
        plan = plan_toolkit(installed(repositories=[entry(enabled=False)]), Request())
        assert steps(plan) == [("repository", "add")]

    def test_mirror_replaces_the_official_entry(self):
        request = Request(repository_url="http://mirror.example/nvidia/deb/")
        plan = plan_toolkit(installed(repositories=[entry()]), request)
        assert steps(plan) == [("repository", "replace")]
        assert plan.repository["url"] == "http://mirror.example/nvidia/deb"

    def test_not_managed(self):
        plan = plan_toolkit(installed(repositories=[]), Request(manage_repository=False))
        assert plan.repository is None

    @pytest.mark.parametrize(
        "uri",
        [
            OFFICIAL,
            f"{OFFICIAL}/",
            f"{OFFICIAL}/$(ARCH)",
            f"{OFFICIAL}/amd64",
            "http://user:secret@NVIDIA.github.io/libnvidia-container/stable/deb/",
        ],
    )
    def test_same_repository(self, uri):
        assert same_repository(uri, [OFFICIAL])

    @pytest.mark.parametrize(
        "uri",
        [
            "https://nvidia.github.io/libnvidia-container/experimental/deb",
            "https://nvidia.github.io/libnvidia-container/stable/debian-other",
            "https://mirror.example/libnvidia-container/stable/deb",
        ],
    )
    def test_another_repository(self, uri):
        assert not same_repository(uri, [OFFICIAL])


class TestCdi:
    def test_without_driver_it_waits(self):
        plan = plan_toolkit(installed(), Request())
        assert plan.cdi is None
        assert any("No NVIDIA driver" in note for note in plan.warnings)

    @pytest.mark.parametrize(
        ("version", "spec", "method"),
        [
            ("1.20.0-1", None, "auto"),
            ("1.17.8-1", None, "generate"),
            ("1.20.0-1", {"path": "/var/run/cdi/nvidia.yaml", "driver_version": "535.1.2"}, "auto"),
            ("1.17.8-1", {"path": "/etc/cdi/nvidia.yaml", "driver_version": "5"}, "generate"),
        ],
    )
    def test_missing_or_old_is_refreshed(self, version, spec, method):
        facts = installed(version, driver__loaded="580.95.05", container_toolkit__cdi_spec=spec)
        plan = plan_toolkit(facts, Request())
        assert steps(plan) == [("cdi", "refresh")]
        assert plan.cdi["method"] == method
        assert plan.cdi["service_expected"] is (method == "auto")
        # What is in /var/run is the service's; a command writes where it stays over a reboot.
        kept = spec and spec["path"] == "/etc/cdi/nvidia.yaml"
        assert plan.cdi["path"] == (spec["path"] if kept else None)

    def test_right_one_is_kept(self):
        spec = {"path": "/var/run/cdi/nvidia.yaml", "driver_version": "580.95.05"}
        facts = installed(driver__loaded="580.95.05", container_toolkit__cdi_spec=spec)
        assert steps(plan_toolkit(facts, Request())) == []

    def test_not_wanted(self):
        facts = installed(driver__loaded="580.95.05")
        assert plan_toolkit(facts, Request(cdi=False)).cdi is None


class TestRuntimes:
    def test_none_is_reported_with_the_next_step(self):
        facts = node(runtimes={"containerd": None, "docker": None, "crio": None})
        plan = plan_toolkit(facts, Request())
        assert not plan.containerd and not plan.docker
        assert any(
            "Next step: Install containerd, CRI-O or Docker" in note for note in plan.warnings
        )

    def test_disabled_cri_is_left_alone_and_reported(self):
        facts = installed(runtimes__containerd__cri_enabled=False)
        plan = plan_toolkit(facts, Request())
        assert not plan.containerd
        assert any("enable_cri" in note for note in plan.warnings)

    def test_disabled_cri_is_enabled_on_request(self):
        facts = installed(runtimes__containerd__cri_enabled=False)
        assert plan_toolkit(facts, Request(containerd_enable_cri=True)).containerd

    def test_default_is_a_change_of_its_own(self):
        request = Request(containerd_set_default=True, docker_set_default=True)
        assert steps(plan_toolkit(installed(), request)) == [
            ("containerd", "default"),
            ("docker", "default"),
        ]

    def test_handler_with_another_binary_is_changed(self):
        facts = installed()
        facts["runtimes"]["containerd"]["handlers"]["nvidia"]["path"] = "/opt/nvidia/runtime"
        plan = plan_toolkit(facts, Request())
        assert steps(plan) == [("containerd", "change")]

    def test_switched_off_by_the_user(self):
        plan = plan_toolkit(node(), Request(containerd="false", docker="false"))
        assert not plan.containerd and not plan.docker

    def test_asked_for_but_not_there(self):
        facts = installed(runtimes__docker=None)
        plan = plan_toolkit(facts, Request(docker="true"))
        assert not plan.docker
        assert any("not installed" in note for note in plan.warnings)

    def test_s7_old_docker_is_told_about_gpus(self):
        facts = installed(runtimes__docker__version="18.09.9")
        plan = plan_toolkit(facts, Request())
        assert plan.docker
        assert any("has no --gpus" in note for note in plan.warnings)


def test_settings_that_differ_are_set():
    facts = installed(container_toolkit__config={"nvidia-container-cli.debug": "/a"})
    request = Request(settings={"nvidia-container-cli.debug": "/b"})
    plan = plan_toolkit(facts, request)
    assert plan.change_config and steps(plan) == [("config", "set")]
    same = Request(settings={"nvidia-container-cli.debug": "/a"})
    assert not plan_toolkit(facts, same).change_config


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nvidia-container-cli.no-cgroups": "true"}, "has to be true or false, and is the text"),
        ({"nvidia-container-cli.ldconfig": "/sbin/ldconfig"}, "has to begin with @"),
        ({"nvidia-container-runtime.mode": "cdii"}, "has to be one of auto, legacy"),
        ({"nvidia-container-runtime": {"mode": "cdi"}}, "neither text, number"),
    ],
)
def test_settings_that_no_container_starts_with_are_a_refusal(settings, words):
    plan = plan_toolkit(installed(), Request(settings=settings))
    assert plan.action == "refuse"
    (reason,) = plan.reasons
    assert reason.startswith("nvidia_container_toolkit_settings: ")
    assert words in reason and "Next step: " in reason


def test_settings_are_judged_by_the_release_that_is_planned():
    request = {"nvidia-container-runtime.mode": "jit-cdi"}
    old = plan_toolkit(installed(), Request(settings=request, version="1.17.8"))
    assert old.action == "refuse"
    assert plan_toolkit(installed(), Request(settings=request)).action == "none"


def test_settings_that_are_not_known_are_a_warning_with_the_nearest_name():
    request = Request(settings={"nvidia-container-cli.no-cgroup": True})
    plan = plan_toolkit(installed(), request)
    assert plan.change_config
    (warning,) = (one for one in plan.warnings if "settings" in one)
    assert "nvidia_container_toolkit_settings: nvidia-container-cli.no-cgroup is no" in warning
    assert "nvidia-container-cli.no-cgroups" in warning


def test_file_that_the_packages_will_make_is_known_as_made():
    assert plan_toolkit(node(), Request()).config_made
    there = node(container_toolkit__config={})
    assert not plan_toolkit(there, Request()).config_made
    assert not plan_toolkit(installed(), Request(version="1.19.0")).config_made


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"os__package_manager": "pacman", "os__id": "arch"}, "arch"),
        ({"os__package_manager": None}, "not known"),
        ({"os__arch": "armv7l"}, "armv7l"),
        (
            {
                **{"os__package_manager": "dnf", "os__family": "rhel"},
                **{"os__id": "rocky", "os__version": "8.10"},
            },
            "Python 3.6",
        ),
    ],
)
def test_refusals_name_the_cause(changes, words):
    plan = plan_toolkit(node(**changes), Request(controller="2.19.14"))
    assert plan.action == "refuse"
    assert words in plan.reasons[0]
    assert not plan.steps and not plan.containerd


@pytest.mark.parametrize(
    ("older", "newer"),
    [("1.9.0-1", "1.20.0-1"), ("1.20.0-1", "1.20.1-1"), ("1.20.0~rc.1-1", "1.20.0.2-1")],
)
def test_versions_compare_by_number(older, newer):
    assert package_numbers(older) < package_numbers(newer)


def test_plan_is_json():
    data = plan_toolkit(node(), Request()).to_json()
    assert json.loads(json.dumps(data)) == data


def test_password_of_a_mirror_is_not_in_the_plan():
    request = Request(repository_url="https://me:s3cret@mirror.example/deb")
    plan = plan_toolkit(node(), request)
    assert plan.repository is not None
    assert "s3cret" not in json.dumps(plan.to_json())


def test_keyring_with_several_accepted_keys_is_right():
    both = [KEY, "A" * 40]
    facts = installed(repositories=[{**entry(key=None), "key_fingerprints": both}])
    assert plan_toolkit(facts, Request(key_fingerprints=tuple(both))).repository is None
    assert plan_toolkit(facts, Request()).repository is not None


def test_toolkit_before_the_split_is_kept_as_it_is():
    facts = installed("1.9.0-1")
    del facts["container_toolkit"]["packages"]["nvidia-container-toolkit-base"]
    plan = plan_toolkit(facts, Request())
    assert (plan.action, plan.change_packages, len(plan.packages)) == ("none", False, 3)


@pytest.mark.parametrize(
    ("distribution", "name", "step"),
    [
        ("k3s", "nvidia", "restart"),
        ("rke2", "nvidia", "restart"),
        ("k3s", "gpu", "add"),
        ("k0s", "nvidia", "add"),
        ("microk8s", "nvidia", "add"),
        ("containerd", "nvidia", "add"),
    ],
)
def test_containerd_of_a_distribution(distribution, name, step):
    facts = node(runtimes__containerd__distribution=distribution)
    plan = plan_toolkit(facts, Request(runtime_name=name))
    assert plan.containerd
    assert ("containerd", step) in steps(plan)
    # Where the restart is left to the user, the plan says so.
    plan = plan_toolkit(facts, Request(runtime_name=name, containerd_restart=False))
    waits = "wait for a restart" if step == "restart" else step
    assert ("containerd", waits) in steps(plan)
    there = {name: {"type": "io.containerd.runc.v2", "path": None, "options": {}}}
    facts = node(
        runtimes__containerd__distribution=distribution, runtimes__containerd__handlers=there
    )
    plan = plan_toolkit(facts, Request(runtime_name=name))
    assert not [engine for engine, _action in steps(plan) if engine == "containerd"]


RUNC = {"type": "io.containerd.runc.v2", "path": None, "options": {}}
UNTYPED = {**RUNC, "type": None}
OURS = {**RUNC, "path": "/usr/bin/nvidia-container-runtime"}


@pytest.mark.parametrize(
    ("handlers", "default", "version", "options", "refused"),
    [
        ({"runc": UNTYPED}, "runc", "1.7.27", {}, "runc"),
        ({"runc": UNTYPED, "nvidia": OURS}, "nvidia", "1.7.27", {}, "runc"),
        ({"runc": UNTYPED, "nvidia-cdi": OURS}, "nvidia-cdi", "1.7.27", {}, "runc"),
        ({"crun": UNTYPED, "runc": RUNC}, "crun", "2.1.4", {}, "crun"),
        ({"runc": UNTYPED}, "runc", "1.7.27", {"containerd_complete_runc": True}, None),
        ({"runc": UNTYPED}, "runc", "1.7.27", {"containerd": "false"}, None),
        # From 2.0 on it is built in.
        ({"runc": UNTYPED}, "runc", "2.1.4", {}, None),
        ({"kata": {**RUNC, "type": "io.containerd.kata.v2"}, "runc": RUNC}, "kata", "1.7.27", {},
         None),
        ({"runc": RUNC}, "runc", "1.7.27", {}, None),
        ({}, "runc", "1.7.27", {}, None),
    ],
)  # fmt: skip
def test_a_runtime_without_a_type_is_refused_before_anything_is_done(
    handlers, default, version, options, refused
):
    """The module refused it, when the packages had been installed."""
    facts = node(
        runtimes__containerd__handlers=handlers,
        runtimes__containerd__default_handler=default,
        runtimes__containerd__version=version,
    )
    plan = plan_toolkit(facts, Request(**options))
    assert (plan.action == "refuse") == bool(refused)
    if refused:
        assert plan.reasons[0].startswith(f"containerd's runtime {refused} has no runtime_type")
        assert ("complete_runc: true" in plan.reasons[0]) == (refused == "runc")
        assert ". Next step: write runtime_type = " in plan.reasons[0]
        assert "\n" not in plan.reasons[0]


LISTED = {"nvidia-container-runtime.runtimes": ["runc", "crun", "/usr/libexec/crio/crun"]}


class TestCrio:
    @pytest.mark.parametrize(
        ("crio", "options", "expected"),
        [
            (packaged(), {}, [("crio", "add")]),
            (packaged(), {"crio": "false"}, []),
            (packaged(runtimes=None), {}, [("crio", "add")]),
            (configured(), {}, []),
            (configured({"path": "/usr/bin/crun"}), {}, [("crio", "change")]),
            (configured({"outdated": True}), {}, [("crio", "change")]),
            (configured({"lacks": ["monitor_path"], "file": "/etc/crio/crio.conf"}), {},
             [("crio", "complete")]),
            (configured(), {"crio_set_default": True}, [("crio", "default")]),
            (configured(default_runtime="nvidia"), {"crio_set_default": True}, []),
            # Taken back where it is ours, left alone where it is somebody else's.
            (configured(default_runtime="nvidia", default_file=packaged()["drop_in_path"]), {},
             [("crio", "default")]),
            (configured(default_runtime="nvidia"), {}, []),
            (configured(restart_required=True), {}, [("crio", "restart")]),
            (configured(restart_required=True), {"crio_restart": False},
             [("crio", "wait for a restart")]),
        ],
    )  # fmt: skip
    def test_it_is_asked_only_where_something_differs(self, crio, options, expected):
        facts = installed(runtimes__crio=crio, container_toolkit__config=LISTED)
        plan = plan_toolkit(facts, Request(**options))
        assert steps(plan) == expected
        assert plan.crio is bool(expected)
        assert all(step.reason for step in plan.steps)

    def test_it_alone_is_runtime_enough(self):
        facts = installed(runtimes__containerd=None, runtimes__docker=None,
                          runtimes__crio=packaged())  # fmt: skip
        plan = plan_toolkit(facts, Request())
        assert not any("No container runtime" in note for note in plan.warnings)

    def test_asked_for_and_not_there(self):
        plan = plan_toolkit(installed(), Request(crio="true"))
        assert not plan.crio and any("CRI-O is requested" in note for note in plan.warnings)

    @pytest.mark.parametrize(
        ("config", "own", "requested", "expected"),
        [
            # As the toolkit's package has it, or before there is one.
            ({"nvidia-container-runtime.runtimes": ["runc", "crun"]}, None, {}, LISTED),
            (None, None, {}, LISTED),
            # It is there: nothing changes, and it is not lost when something else does.
            (LISTED, None, {}, LISTED),
            ({"nvidia-container-runtime.runtimes": ["/usr/libexec/crio/crun", "x"]}, None, {},
             {"nvidia-container-runtime.runtimes": ["/usr/libexec/crio/crun", "x"]}),
            # In PATH, or of a name that is looked for.
            (None, {"name": "crun", "path": "/usr/bin/crun"}, {}, {}),
            (None, {"name": "crun", "path": None}, {}, {}),
            # The user's own word counts.
            (None, None, {"nvidia-container-runtime.runtimes": ["crun"]},
             {"nvidia-container-runtime.runtimes": ["crun"]}),
        ],
    )  # fmt: skip
    def test_a_runtime_outside_path_is_named_to_nvidias(self, config, own, requested, expected):
        crio = configured(**({"own_runtime": own} if own else {}))
        facts = installed(runtimes__crio=crio, container_toolkit__config=config)
        plan = plan_toolkit(facts, Request(settings=requested))
        assert plan.settings == expected
        assert plan.change_config is (bool(expected) and config != expected)
        if plan.change_config and not requested:
            assert any("/usr/libexec/crio/crun" in reason for reason in plan.reasons)

    def test_an_incomplete_handler_in_a_file_that_crio_reads_last_is_refused(self):
        path = "/etc/crio/crio.conf.d/99-operator.conf"
        crio = configured({"lacks": ["monitor_path"], "file": path})
        plan = plan_toolkit(installed(runtimes__crio=crio), Request())
        assert (plan.action, len(plan.reasons)) == ("refuse", 1)
        assert f"{path} sets CRI-O's handler nvidia" in plan.reasons[0]
        assert "monitor_path (CRI-O searches conmon in PATH" in plan.reasons[0]
        off = plan_toolkit(installed(runtimes__crio=crio), Request(crio="false"))
        assert off.action != "refuse"

    def test_without_crio_the_toolkits_settings_are_the_users(self):
        request = Request(settings={"a.b": 1}, crio="false")
        facts = installed(runtimes__crio=packaged())
        assert plan_toolkit(facts, request).settings == {"a.b": 1}


def test_docker_that_may_not_be_restarted_is_not_planned_to_be():
    plan = plan_toolkit(node(), Request(docker_restart="never"))
    assert ("docker", "restart") not in steps(plan)


def test_name_by_which_the_facts_would_not_know_our_file_is_refused():
    plan = plan_toolkit(node(), Request(repository_name="toolkit"))
    assert plan.action == "refuse" and "kubegpu-" in plan.reasons[0]


@pytest.mark.parametrize(
    ("manager", "family", "version", "core"),
    [
        ("dnf", "rhel", "9.4", "2.19.14"),
        ("dnf", "rhel", "8.10", "2.21.0"),
        ("dnf", "rhel", "8.10", ""),
        ("zypper", "suse", "15.6", "2.19.14"),
        ("dnf5", "rhel", "44", "2.19.14"),
    ],
)
def test_rpm_families(manager, family, version, core):
    facts = node(os__package_manager=manager, os__family=family, os__version=version)
    plan = plan_toolkit(facts, Request(controller=core))
    assert plan.action == "install" and plan.version == "1.20.1-1"
    assert plan.repository["url"].endswith("/stable/rpm")
    # NVIDIA signs the metadata of this repository, and not its packages.
    assert plan.repository["check_packages"] is False


def test_the_repository_of_an_rpm_node_that_is_there_stays():
    entry = {
        "file": "/etc/yum.repos.d/nvidia-container-toolkit.repo",
        "uri": "https://nvidia.github.io/libnvidia-container/stable/rpm/$basearch",
        "enabled": True,
        "key_fingerprint": "C95B321B61E88C1809C4F759DDCAE044F796ECB0",
        "key_fingerprints": ["C95B321B61E88C1809C4F759DDCAE044F796ECB0"],
    }
    facts = node(os__package_manager="dnf", os__family="rhel", repositories=[entry])
    assert plan_toolkit(facts, Request()).repository is None


CONTAINERD = node()["runtimes"]["containerd"]


@pytest.mark.parametrize(("changes", "options", "said"), [
    ({"podman": "4.9.3"}, {}, "Podman 4.9.3 reads CDI specifications up to 0.6.0"),
    ({"podman": "5.1.0"}, {}, ""), ({"podman": None}, {}, ""), ({"podman": "3.4.4"}, {}, ""),
    ({"podman": "4.9.3"}, {"version": "1.19.0-1"}, ""), ({"podman": "4.9.3"}, {"cdi": False}, ""),
    ({"runtimes__containerd": {**CONTAINERD, "version": "1.7.13", "cdi_enabled": True}}, {},
     "containerd 1.7.13 reads"),
    # The nvidia runtime reads the specification where containerd's CDI is off.
    ({"runtimes__containerd": {**CONTAINERD, "version": "1.7.13", "cdi_enabled": False}}, {}, ""),
    ({"runtimes__containerd": {**CONTAINERD, "version": "2.1.4", "cdi_enabled": True}}, {}, ""),
])  # fmt: skip
def test_an_engine_that_does_not_read_what_the_toolkit_writes(changes, options, said):
    """nvidia-container-toolkit 1860, 1865 and 1940: the toolkit 1.19.1 with Podman 4.9."""
    plan = plan_toolkit(node(**changes), Request(**options))
    notes = [text for text in plan.warnings if "reads CDI specifications" in text]

    assert len(notes) == bool(said)
    assert all(text.startswith(said) and "no-additional-gids" in text for text in notes)
