# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.options import read_options

QUOTES = ", with the quotes: without them YAML reads 12.10 as the number 12.1."
UNKNOWN = "CUDA 12.99 is not a known release; the nearest known ones are 12.9 and 13.0. "


def refused(**options):
    with pytest.raises(InputError) as caught:
        read_options(options)
    return caught.value


@pytest.mark.parametrize(
    ("value", "step"),
    [
        (12.9, f"Write ['12.9']{QUOTES}"),
        (12.1, f"Write ['12.1']{QUOTES}"),
        (12.99, f"{UNKNOWN}Write ['12.9']{QUOTES}"),
        (12, "Write versions in quotes, such as ['12.9']."),
        ({"12.9": None}, "Write versions in quotes, such as ['12.9']."),
    ],
)
def test_versions_that_are_no_list_are_told_how_to_write_them(value, step):
    error = refused(versions=value)
    assert error.cause == f"cuda_toolkit_versions is {value!r}, which is not a list."
    assert error.next_step == step


@pytest.mark.parametrize(
    ("value", "step"),
    [
        (13.0, f"Write '13.0'{QUOTES}"),
        (12.99, f"{UNKNOWN}Write '12.9'{QUOTES}"),
        (None, "Write versions in quotes, such as '12.9'."),
    ],
)
def test_a_version_that_is_no_text_is_told_how_to_write_it(value, step):
    error = refused(versions=["12.4", value])
    assert error.cause == f"cuda_toolkit_versions has {value!r}, which is not text."
    assert error.next_step == step


def test_the_default_is_a_text_too():
    error = refused(versions=["12.9"], default=12.9)
    assert error.cause == "cuda_toolkit_default is 12.9, which is not text."
    assert error.next_step == f"Write '12.9'{QUOTES}"


def test_a_release_that_the_user_adds_is_known():
    error = refused(versions=12.99, data={"releases": {"12.99.0": "579.10"}})
    assert error.next_step == f"Write ['12.99']{QUOTES}"


def test_versions_may_be_a_text_as_ansible_reads_lists():
    assert read_options({"versions": "12.9, 13.0"})[0].versions == ("12.9", "13.0")


@pytest.mark.parametrize("name", ["versions", "default", "driver_version"])
def test_what_is_no_version_is_refused_by_name(name):
    assert refused(**{name: "twelve"}).cause.startswith(f"cuda_toolkit_{name}: ")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"source": "cuda"}, "cuda_toolkit_source has to be one of auto, package"),
        ({"hold": "perhaps"}, "cuda_toolkit_hold has to be true or false"),
        (
            {"key_fingerprints": {"a": 1}},
            "cuda_toolkit_repository.key_fingerprints has to be a list",
        ),
        ({"libraries": {"cublas": ""}}, "cuda_toolkit_libraries: cublas is not known"),
        ({"runfiles": {12.9: {}}}, "cuda_toolkit_runfiles: put 12.9 in quotes"),
        ({"runfiles": {"12.9": "x.run"}}, "cuda_toolkit_runfiles[12.9] is not a mapping"),
    ],
)
def test_other_values_are_refused_by_name(options, text):
    assert refused(**options).cause.startswith(text)
