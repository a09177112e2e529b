# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a task gets from the mappings of a role, and what of an address is in no plan."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._settings import (
    with_proxies,
    with_repository,
)

ALL = {"http_proxy": "http://all:1", "https_proxy": "http://all:1", "no_proxy": ".lan"}
MIRROR = "https://me:s3cret@mirror.example/cuda"
SHOWN = "https://***@mirror.example/cuda"


@pytest.mark.parametrize(
    ("mappings", "found"),
    [
        ([], {}),
        ([{}, {}], {}),
        ([ALL, {}], ALL),
        ([{}, ALL], ALL),
        # Of one key, the other keys are kept; None is "not set", and an empty one is no proxy.
        ([ALL, {"https_proxy": "http://own:2"}], {**ALL, "https_proxy": "http://own:2"}),
        ([ALL, {"https_proxy": None}], ALL),
        ([ALL, {"http_proxy": "", "https_proxy": ""}], {"no_proxy": ".lan"}),
        # Of repositories only.
        ([{"ca_file": "/etc/ca.pem"}], {}),
    ],
)
def test_proxies_are_merged_by_key(mappings, found):
    assert with_proxies({"name": "x", "proxies": mappings}) == {"name": "x", **found}


def test_an_option_of_the_task_counts_first():
    options = {"http_proxy": "http://task:3", "proxies": [ALL]}
    assert with_proxies(options) == {**ALL, "http_proxy": "http://task:3"}


@pytest.mark.parametrize("wrong", ["http://all:1", ALL, ["http://all:1"]])
def test_what_is_no_list_of_mappings_is_refused(wrong):
    with pytest.raises(InputError, match="proxies has to be a list of mappings"):
        with_proxies({"proxies": wrong})


@pytest.mark.parametrize(
    ("url", "settings", "found"),
    [
        ("https://own.example/x", {}, "https://own.example/x"),
        (SHOWN, {"url": f"{MIRROR}/"}, MIRROR),
        # The plan has replaced a placeholder.
        (f"{SHOWN}/rhel9", {"url": MIRROR + "/{distribution}"}, f"{MIRROR}/rhel9"),
        ("https://m.example/x?***", {"url": "https://m.example/{distribution}?sig=1"},
         "https://m.example/x?sig=1"),
    ],
)  # fmt: skip
def test_the_password_of_an_address_comes_back(url, settings, found):
    assert with_repository({"url": url, "settings": settings}, None)["url"] == found


def test_a_key_in_the_repository_has_its_password_and_one_of_its_own_another():
    options = {"url": SHOWN, "key_url": f"{SHOWN}/key.asc", "settings": {"url": MIRROR}}
    assert with_repository(options, None)["key_url"] == f"{MIRROR}/key.asc"
    own = {"url": MIRROR, "key_url": "https://other:pw@keys.example/k"}
    options = {"url": SHOWN, "key_url": "https://***@keys.example/k", "settings": own}
    assert with_repository(options, None)["key_url"] == own["key_url"]


def test_a_file_takes_the_place_of_the_address_of_the_key():
    options = {"url": SHOWN, "key_url": f"{SHOWN}/k", "key_fingerprints": ["A"], "settings": {}}
    found = with_repository(options, "KEY")
    assert found["key"] == "KEY" and found["key_fingerprints"] == ["A"]
    assert "key_url" not in found


def test_a_key_of_the_distribution_needs_nothing_else():
    options = {"url": "http://deb.example", "keyring": "/usr/share/keyrings/x.gpg", "settings": {},
               "key_fingerprints": []}  # fmt: skip
    assert with_repository(options, None) == {
        "url": "http://deb.example", "keyring": "/usr/share/keyrings/x.gpg"
    }  # fmt: skip


def test_a_repository_has_a_certificate_authority_and_without_settings_nothing_changes():
    options = {"name": "x", "url": SHOWN, "proxies": [{"ca_file": "/etc/ca.pem"}]}
    found = {"name": "x", "url": SHOWN, "ca_file": "/etc/ca.pem"}
    assert with_repository(options, None) == found
