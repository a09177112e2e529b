# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guards that nothing else would make up for: keys, holds, rights, a card's first CUDA."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.manifests import (
    manifests,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._device_plugin.options import (
    read_request,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.compatibility import (
    check as check_cuda,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.cuda_releases import FIRST_CUDA
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.record import to_hold_again
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.types import (
    INSTALLED,
    Package,
    Plan,
    Record,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository import plan as repository
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository.apt import AptFormat
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository.types import Request
from tests.unit.plugins.module_utils._formats.test_openpgp import (
    ED25519,
    ED25519_FINGERPRINT,
    RSA2048,
    RSA2048_FINGERPRINT,
)

NODES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
FEATURES = [
    {
        "apiGroups": ["nfd.k8s-sigs.io"],
        "resources": ["nodefeatures"],
        "verbs": ["get", "list", "watch", "create", "update"],
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
]

# -- keys ----------------------------------------------------------------------------------------


def asked(key, *accepted):
    return Request(
        "nvidia",
        AptFormat(),
        url="https://nvidia.example/deb",
        key=key.decode(),
        key_fingerprints=accepted,
    )


@pytest.mark.parametrize("key", [ED25519 + RSA2048, RSA2048 + ED25519])
@pytest.mark.parametrize("accepted", [ED25519_FINGERPRINT, RSA2048_FINGERPRINT])
def test_one_good_key_makes_no_file_of_several_good(key, accepted):
    """The package manager trusts every key of the file, so that each has to be expected."""
    with pytest.raises(InputError, match="not the expected one") as caught:
        repository.check(asked(key, accepted))
    assert ED25519_FINGERPRINT in caught.value.evidence
    assert RSA2048_FINGERPRINT in caught.value.evidence


def test_a_file_of_keys_that_are_all_expected_is_good():
    both = (ED25519_FINGERPRINT, RSA2048_FINGERPRINT)
    assert repository.check(asked(ED25519 + RSA2048, *both)).fingerprints == both
    # What is expected and not there yet does no harm: a key that is to come.
    assert repository.check(asked(ED25519, *both)).fingerprints == (ED25519_FINGERPRINT,)


@pytest.mark.parametrize(
    "wrong",
    [
        {"components": ("main\nTrusted: yes",)},
        # An attack, refused: apt would take it as an option that accepts any signature.
        {"components": ("main", "[trusted=yes]")},
        {"url": "https://h;}evil{/deb"},
        {"url": 'https://h"/deb'},
    ],
)
def test_nothing_can_be_added_to_an_entry(wrong):
    """A line or an option more would switch signatures off."""
    request = replace(asked(ED25519, ED25519_FINGERPRINT), suite="stable", **wrong)
    # By these words: for other reasons the request would be refused without those checks, too.
    with pytest.raises(InputError, match=r"not a component of a repository|that no host has"):
        repository.check(request)


@pytest.mark.parametrize(
    "short", [ED25519_FINGERPRINT[-16:], ED25519_FINGERPRINT[-8:], ED25519_FINGERPRINT[:-1]]
)
def test_a_short_key_id_is_no_fingerprint(short):
    with pytest.raises(InputError, match="not a full fingerprint"):
        repository.check(asked(ED25519, short))


# -- holds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1", "2"])
def test_what_was_held_is_held_anew_after_an_upgrade(version):
    """A package manager takes the hold away with the old version."""
    before = {"a": Package(INSTALLED, version, True), "b": Package(INSTALLED, "2", True)}
    after = {name: Package(INSTALLED, "2", True) for name in before}
    install = {} if version == "2" else {"a": "2"}
    plan = Plan(before, after, install)
    assert plan.to_hold() == tuple(install)
    assert plan.to_release() == ()
    assert plan.changed == bool(install)


def test_what_was_released_for_a_change_and_is_not_of_the_set_is_held_anew():
    packages = {
        "theirs": Package(INSTALLED, "1"),
        "ours": Package(INSTALLED, "1"),
        "held": Package(INSTALLED, "1", True),
    }
    record = Record({}, released=("theirs", "ours", "held", "gone"))
    plan = Plan({}, {"ours": Package(INSTALLED, "1")})
    assert to_hold_again(record, plan, packages) == ("theirs",)


# -- rights --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ({}, {}),
        ({"feature_discovery": True}, {}),
        ({"configs": {"one": {}, "two": {}}}, {"ClusterRole": NODES}),
        ({"feature_discovery": True, "feature_discovery_api": True}, {"Role": FEATURES}),
    ],
)
def test_rights_are_these_and_no_more(options, rules):
    made = manifests(read_request(options))
    assert {one["kind"]: one["rules"] for one in made if "rules" in one} == rules
    bound = {one["kind"]: one for one in made if one["kind"].endswith("RoleBinding") and rules}
    assert set(bound) == {f"{kind}Binding" for kind in rules}
    for kind, binding in bound.items():
        assert binding["roleRef"]["kind"] == kind.removesuffix("Binding")
        assert [subject["kind"] for subject in binding["subjects"]] == ["ServiceAccount"]


# -- CUDA ----------------------------------------------------------------------------------------

# Written a second time, so that a slip in the table alone is seen.
FIRST = {
    "kepler": "6.0",
    "maxwell": "6.5",
    "pascal": "8.0",
    "volta": "9.0",
    "turing": "10.0",
    "ampere": "11.0",
    "ada": "11.8",
    "hopper": "11.8",
    "blackwell": "12.8",
    "rubin": "13.4",
}


def test_the_first_cuda_of_every_generation():
    assert dict(FIRST_CUDA) == FIRST


@pytest.mark.parametrize(
    ("generation", "older", "first"),
    [("ada", "11.7", "11.8"), ("hopper", "11.7", "11.8"), ("blackwell", "12.6", "12.8")],
)
def test_a_card_is_older_than_no_cuda_from_its_first_one_on(generation, older, first):
    card = {
        "vendor": "nvidia", "generation": generation, "product": "a card", "device_id": "1",
        "address": "0000:01:00.0",
    }  # fmt: skip
    (warning,) = [one for one in check_cuda(older, [card], "620").warnings if "compile" in one]
    assert f"{first} is the first" in warning
    assert not [one for one in check_cuda(first, [card], "620").warnings if "compile" in one]
