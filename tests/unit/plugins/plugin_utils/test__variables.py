# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names that are not variables of this collection, and values that are refused."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.metrics import (
    TEXTFILE_METRICS,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._foreign_names import FOREIGN, foreign
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables import (
    READERS,
    Unknown,
    known_names,
    mistaken_for_no_cluster,
    prefixed,
    roles_of,
    unknown,
    without_cluster,
    wrong,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables_data import (
    KEPT_FACTS,
    ROLES,
)

ROOT = Path(__file__).parents[4]
UTILS = "ansible_collections.kubegpu.nodes.plugins.module_utils"
SPECIFICATIONS = {
    role: yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text())[
        "argument_specs"
    ]["main"]["options"]
    for role in ROLES
}
KNOWN = known_names(SPECIFICATIONS)
# What a file of the collection sets: registered answers, facts, variables of plays and tasks.
SETS = re.compile(r"^\s*(?:- )?register: (\w+)|^\s+([a-z_]+): ?", re.M)


def test_every_role_is_looked_at():
    assert set(ROLES) == {path.name for path in (ROOT / "roles").iterdir()}


def test_what_roles_and_playbooks_set_themselves_is_known():
    """Internal names begin with two underscores, or are kept facts."""
    files = [*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("roles/*/vars/*.yml")]
    files += [*ROOT.glob("playbooks/*.yml"), *ROOT.glob("playbooks/parts/*.yml")]
    files += ROOT.glob("playbooks/tasks/*.yml")
    found = {
        name
        for path in files
        for groups in SETS.findall(path.read_text(encoding="utf-8"))
        for name in groups
        if prefixed([name])
    }
    assert set(KEPT_FACTS) <= found
    assert found <= KNOWN


def test_every_variable_of_the_playbooks_is_read():
    files = [*ROOT.glob("roles/*/*/*.yml"), *ROOT.glob("playbooks/**/*.yml")]
    files += ROOT.glob("plugins/**/*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    read = {name for name in re.findall(r"(?<![\w'])kubegpu_[a-z_]+", text) if name[-1] != "_"}
    names = ("nvidia", "amd", "intel", "gpu", "none", "cluster")
    names += ("monitored", "reported", "refused", "failed", "not_read", "first_read")
    groups = {f"kubegpu_{name}" for name in names}
    metrics = {metric.name for metric in TEXTFILE_METRICS}
    assert read - groups - metrics - KNOWN == set()


def test_variables_of_the_documentation_are_known():
    """Those with a role's prefix that a page sets or names."""
    roles = "|".join(sorted(path.name for path in (ROOT / "roles").iterdir()))
    named = set()
    for page in [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.rst")]:
        text = page.read_text(encoding="utf-8")
        named |= set(re.findall(rf"`((?:{roles})_[a-z0-9_.]+)(?:: [^`]*)?`", text))
    plugins = {path.stem for path in ROOT.glob("plugins/*/*.py")}
    assert "gpu_verify_all" in named
    assert named - plugins - KNOWN == set()


def test_variables_of_the_examples_are_known():
    found = set()
    for path in (ROOT / "playbooks" / "examples").glob("inventories/**/*.yml"):
        found |= set(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert prefixed(found) and set(prefixed(found)) <= KNOWN


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        # The one that was seen to be ignored without a word.
        ("nvidia_driver_kernel_modules", "nvidia_driver_kernel_module"),
        ("nvidia_driver_brnach", "nvidia_driver_branch"),
        ("nvidia_container_toolkit_containerd_default", None),
        ("cuda_toolkit_version", "cuda_toolkit_versions"),
        ("gpu_node_labels_taint", "gpu_node_labels_taints"),
        ("nvidia_device_plugin_config_map", "nvidia_device_plugin_config"),
        ("gpu_verify_pod", "gpu_verify_pods"),
        ("kubegpu_serials", "kubegpu_serial"),
        # As the connection's, the proxies' and the repositories' variables were called before.
        ("kubegpu_kubeconfig", "kubegpu_kube.kubeconfig"),
        ("kubegpu_kubernetes", "kubegpu_kube"),
        ("kubegpu_kube_host", "kubegpu_kube.host"),
        ("kubegpu_https_proxy", "kubegpu_proxy.https_proxy"),
        ("gpu_verify_kube", "kubegpu_kube"),
        ("nvidia_driver_repository_url", "nvidia_driver_repository.url"),
        ("nvidia_driver_key_url", "nvidia_driver_repository.key_url"),
        ("cuda_toolkit_key_fingerprints", "cuda_toolkit_repository.key_fingerprints"),
        ("kubegpu_xyzzy", None),
        # The opposite of what is there: with the value of the other name, nodes reboot undrained.
        ("nvidia_driver_no_reboot", None),
        ("nvidia_driver_disable_reboot", None),
        ("gpu_verify_skip_pods", None),
        ("nvidia_driver_unhold", None),
        ("nvidia_driver_disabled", None),
    ],
)
def test_the_nearest_name_of_the_same_role(name, nearest):
    (one,) = unknown({"gpu1": [name]}, KNOWN)
    assert one.name == name
    if nearest:
        assert one.nearest == nearest
    else:
        assert one.nearest is None or one.nearest.startswith(name.split("_")[0])


@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_names_of_other_peoples_roles_have_a_word_of_their_own(name):
    """shared inventories of NVIDIA's role and of kubespray: what to set instead is known here."""
    (one,) = unknown({"gpu1": [name]}, KNOWN)
    text = str(one)
    assert "Did you mean" not in text and "It is a variable of " in text
    # No advice names a variable that is not there.
    here = re.findall(r"nvidia_driver_[a-z_]+", text.partition(" Here: ")[2])
    assert all(any(known.startswith(word) for known in KNOWN) for word in here), here


def test_a_name_of_another_role_that_this_collection_has_is_its_own():
    assert not FOREIGN.keys() & set(KNOWN)
    assert "nvidia_driver_reboot has the opposite meaning" in foreign("nvidia_driver_skip_reboot")


def test_a_name_is_told_once_for_all_hosts():
    names = {"": [], **{f"gpu{number}": ["nvidia_driver_brunch"] for number in range(40)}}
    (one,) = unknown(names, KNOWN)
    assert str(one) == (
        "nvidia_driver_brunch is not a variable of this collection, and is set for gpu0 and 39 "
        "more hosts. Did you mean nvidia_driver_branch?"
    )
    assert "set for gpu7." in str(Unknown("x", ("gpu7",)))
    assert "gpu7 and 1 more host." in str(Unknown("x", ("gpu7", "gpu8")))
    assert "set for the play." in str(Unknown("x", ()))


def test_names_of_others_are_nobodys_business():
    others = ["nvidia_driver", "containerd_version", "driver_branch", "ansible_host", "kubegpu", 7]
    assert prefixed([*others, "__nvidia_driver_plan", "nvidia_driver_x"]) == ["nvidia_driver_x"]


def fits(name, option, value):
    checked = {key: option[key] for key in ("type", "elements", "choices") if key in option}
    return not ArgumentSpecValidator({name: checked}).validate({name: value}).error_messages


def refused(**values):
    return {one.variable: one for one in wrong(values, SPECIFICATIONS, fits)}


def test_defaults_and_what_yaml_and_ini_make_of_values_are_right():
    for role in ROLES:
        defaults = {
            name: option["default"]
            for name, option in SPECIFICATIONS[role].items()
            if "{{" not in str(option["default"])
        }
        assert refused(**defaults) == {}, role
    assert not refused(
        nvidia_driver_branch=580,
        nvidia_driver_hold="false",
        nvidia_driver_dkms=True,
        nvidia_driver_build_timeout="60",
        kubegpu_packages={"lock_timeout": "60"},
        nvidia_container_toolkit_docker=False,
        kubegpu_serial="25%",
        kubegpu_become="no",
    )


@pytest.mark.parametrize(
    ("variable", "value", "part", "words"),
    [
        ("nvidia_driver_source", "foo", "driver", "one of auto, distro, nvidia, runfile"),
        ("nvidia_driver_branch", "abc", "driver", "auto or a number such as 580"),
        ("nvidia_driver_hold", "perhaps", "driver", "true or false"),
        ("nvidia_driver_build_timeout", "soon", "driver", "a whole number"),
        ("nvidia_driver_runfile", {"url": "x", "path": "y"}, "driver", "either url or path"),
        ("nvidia_driver_licence", ["x"], "driver", "a mapping"),
        ("cuda_toolkit_source", "foo", "cuda", "one of auto, package, runfile, distro"),
        ("cuda_toolkit_versions", ["abc"], "cuda", "abc"),
        ("nvidia_container_toolkit_docker_restart", "maybe", "toolkit", "never, if_idle, always"),
        ("gpu_node_labels_match", "serial", "labels", "one of machine_id, name"),
        ("nvidia_device_plugin_method", "kustomize", "device plugin", "one of manifest, helm"),
        ("gpu_verify_timeout", "long", "verify", "a whole number"),
        ("kubegpu_serial", "abc", "playbook", "a number of nodes from 1 on"),
        ("kubegpu_max_fail_percentage", 200, "playbook", "a number from 0 to 100"),
        ("kubegpu_unknown_variables", "shout", "playbook", "one of warn, fail, ignore"),
        ("kubegpu_become", "perhaps", "playbook", "true or false"),
    ],
)
def test_a_wrong_value_is_named_with_what_it_has_to_be(variable, value, part, words):
    found = refused(**{variable: value})
    assert list(found) == [variable]
    one = found[variable]
    assert one.part == part and variable in one.message and words in one.message
    assert one.cluster is (part in ("labels", "device plugin"))


def test_every_wrong_value_is_told_and_the_right_ones_are_not():
    found = refused(
        nvidia_driver_source="foo",
        nvidia_driver_branch="abc",
        nvidia_driver_version="x",
        nvidia_driver_hold=True,
        cuda_toolkit_source="foo",
    )
    assert sorted(found) == [
        "cuda_toolkit_source",
        "nvidia_driver_branch",
        "nvidia_driver_source",
        "nvidia_driver_version",
    ]


def test_what_is_right_beside_another_value_is_right():
    name = {"name": "site"}
    assert list(refused(nvidia_driver_repository=name)) == ["nvidia_driver_repository.name"]
    assert refused(nvidia_driver_repository={**name, "manage": False}) == {}


def test_a_mig_configuration_is_known_beside_the_mapping_that_has_it():
    entry = {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 1}}
    mixed = {"nvidia_mig_config": "mixed", "nvidia_mig_configs": {"mixed": [entry]}}
    assert refused(**mixed) == {}
    assert "'mixed' is not known" in refused(nvidia_mig_config="mixed")["nvidia_mig_config"].message
    mixed["nvidia_mig_configs"]["mixed"] = [{**entry, "devices": "first"}]
    assert "nvidia_mig_configs[mixed][0].devices" in refused(**mixed)["nvidia_mig_config"].message


@pytest.mark.parametrize(
    ("variable", "value"),
    [("gpu_upgrade_batch", ["1", "0%"]), ("gpu_upgrade_batch", "0"), ("gpu_upgrade_canary", -1),
     ("gpu_upgrade_pods", "some"), ("gpu_upgrade_max_unavailable", "a few"),
     ("gpu_upgrade_max_failed", -1)],
)  # fmt: skip
def test_a_wrong_value_of_an_upgrade_is_refused_with_and_without_a_cluster(variable, value):
    (one,) = refused(**{variable: value}).values()
    assert (one.variable, one.part, one.cluster) == (variable, "upgrade", False)
    assert refused(gpu_upgrade_batch=[1, "50%"], gpu_upgrade_canary=["gpu1"]) == {}


@pytest.mark.parametrize("role", ["nvidia_driver", "cuda_toolkit", "nvidia_container_toolkit"])
def test_every_key_of_a_repository_is_read_by_the_roles_reader(role):
    good = {"url": "https://m.example", "key_url": "https://m.example/k", "key_file": "k.asc",
            "key_fingerprints": ["A" * 40], "name": "kubegpu-x", "manage": True}  # fmt: skip
    assert refused(**{f"{role}_repository": good}) == {}
    assert good.keys() == SPECIFICATIONS[role][f"{role}_repository"]["options"].keys()


@pytest.mark.parametrize(
    ("variable", "value", "name", "part", "words"),
    [
        ("nvidia_driver_repository", {"key_ulr": "x"}, "nvidia_driver_repository.key_ulr",
         "driver", "Did you mean nvidia_driver_repository.key_url?"),
        ("nvidia_driver_repository", {"manage": "perhaps"}, "nvidia_driver_repository.manage",
         "driver", "has to be true or false"),
        ("nvidia_driver_repository", "mirror", "nvidia_driver_repository", "driver", "a mapping"),
        ("nvidia_driver_runfile", {"uri": "x"}, "nvidia_driver_runfile.uri",
         "driver", "Did you mean nvidia_driver_runfile.url?"),
        ("nvidia_driver_licence", {"port": "x"}, "nvidia_driver_licence.port",
         "driver", "a whole number"),
        ("cuda_toolkit_repository", {"key_fingerprints": {"a": 1}},
         "cuda_toolkit_repository.key_fingerprints", "cuda", "a list of texts"),
        ("kubegpu_kube", {"tokn": "hunter2"}, "kubegpu_kube.tokn",
         "playbook", "Did you mean kubegpu_kube.token?"),
        ("kubegpu_kube", {"xyzzy": 1}, "kubegpu_kube.xyzzy", "playbook", "_kube has kubeconfig, "),
        ("kubegpu_kube", ["hunter2", {}], "kubegpu_kube", "playbook", "a mapping"),
        ("kubegpu_kube", ["token: hunter2"], "kubegpu_kube", "playbook", "kubegpu_kube: a list"),
        ("kubegpu_kube", '{"token": "hunter2"}', "kubegpu_kube", "playbook", "_kube: a text"),
    ],
)  # fmt: skip
def test_a_wrong_key_of_a_mapping_is_named(variable, value, name, part, words):
    found = refused(**{variable: value})
    assert list(found) == [name]
    assert found[name].part == part and name in found[name].message and words in found[name].message
    assert "Next step" in found[name].message or "Seen" in found[name].message
    assert "hunter2" not in found[name].message


def test_a_long_value_is_not_shown_whole():
    words = refused(nvidia_driver_source="x" * 5000)["nvidia_driver_source"].message
    assert len(words) < 400 and "xxx..." in words


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gpu_verify_env", [{"name": "API_TOKEN", "value": "hunter2"}]),
        ("nvidia_driver_licence", [{"password": "hunter2"}]),
        ("nvidia_container_toolkit_settings", [{"password": "hunter2"}]),
    ],
)
def test_what_lies_in_a_wrong_value_is_not_shown(name, value):
    (found,) = refused(**{name: value}).values()
    assert "hunter2" not in found.message


@pytest.mark.parametrize("role", READERS)
def test_the_reader_of_a_roles_options_takes_none(role):
    assert role in ROLES and not wrong({}, SPECIFICATIONS, fits)
    file, function = READERS[role]
    module = importlib.import_module(f"{UTILS}.{file}")
    assert getattr(module, function)({}) is not None


def test_a_reader_is_imported_for_variables_of_its_role(monkeypatch):
    name = f"{UTILS}._upgrade.options"
    monkeypatch.delitem(sys.modules, name, raising=False)
    assert not wrong({"nvidia_driver_branch": "580"}, SPECIFICATIONS, fits)
    assert name not in sys.modules
    assert wrong({"gpu_upgrade_max_failed": -1}, SPECIFICATIONS, fits) and name in sys.modules


def test_the_roles_whose_prefix_a_name_has():
    names = ["nvidia_driver_branch", "gpu_verify_all", "kubegpu_kube", "ansible_host"]
    assert roles_of(names) == {"nvidia_driver", "gpu_verify"}


def test_variables_of_a_cluster_without_one_are_named_once():
    text = without_cluster(
        {"": [], "a": ["nvidia_device_plugin_sharing", "gpu_node_labels_taint"],
         "b": ["nvidia_device_plugin_sharing"]}
    )  # fmt: skip
    assert text.startswith(
        "gpu_node_labels_taint is set for a (1 more of its kind), and kubegpu_kube for no host: "
    )
    assert "Next step: set kubegpu_kube" in text
    # The guide to closed sites sets the images for all hosts.
    assert without_cluster({"": ["nvidia_device_plugin_image"], "a": []}) == ""
    # Monitoring sets up hosts as well.
    assert without_cluster({"": ["gpu_monitoring_enabled"], "a": ["nvidia_driver_branch"]}) == ""


def test_a_connection_without_an_address_is_refused():
    """A context alone would count as no cluster: a default kubeconfig is never used."""
    (found,) = wrong({"kubegpu_kube": {"context": "testbed", "delegate": None}}, {}, fits)
    assert (found.variable, found.part) == ("kubegpu_kube", "playbook")
    assert found.message.startswith("kubegpu_kube has context, but neither kubeconfig nor host")
    assert "Next step: Set kubegpu_kube.kubeconfig to a file" in found.message
    for right in (
        {},
        {"kubeconfig": ""},
        {"kubeconfig": "/x", "context": "a"},
        {"host": "b"},
        None,
    ):
        assert wrong({"kubegpu_kube": right}, {}, fits) == []


@pytest.mark.parametrize(
    ("name", "stops"),
    [
        ("kubegpu_kub", True),
        ("kubegpu_kubeconfig", True),
        ("kubegpu_kube_context", True),
        ("nvidia_device_plugin_kube", True),
        # Of the inventory itself, for a template.
        ("kubegpu_token", False),
        ("kubegpu_seriall", False),
        ("kubegpu_kube_namespac", False),
    ],
)
def test_a_mistyped_connection_ends_the_run(name, stops):
    def found(names, without):
        return [one.name for one in mistaken_for_no_cluster(unknown(names, KNOWN), without)]

    names = {"": [], "a": [name], "b": []}
    assert found(names, ["a", "b"]) == ([name] if stops else [])
    # Of the play, for all hosts; and with a connection next to it.
    assert found({"": [name]}, ["a"]) == ([name] if stops else [])
    assert found(names, ["b"]) == found({"": [name]}, []) == []
