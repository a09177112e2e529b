# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""References of images; the grammar is that of github.com/distribution/reference."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.image import (
    check_reference,
    split,
)

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("busybox", ("busybox", "", "")),
        ("localhost/testbed/busybox:1", ("localhost/testbed/busybox", "1", "")),
        ("mirror.example:5000/a/b", ("mirror.example:5000/a/b", "", "")),
        ("mirror.example:5000/a/b:v1.2-x_y", ("mirror.example:5000/a/b", "v1.2-x_y", "")),
        (f"nvcr.io/nvidia/x@{DIGEST}", ("nvcr.io/nvidia/x", "", DIGEST)),
        (f"nvcr.io/nvidia/x:v1@{DIGEST}", ("nvcr.io/nvidia/x", "v1", DIGEST)),
        ("[2001:db8::1]:5000/a:1", ("[2001:db8::1]:5000/a", "1", "")),
        ("Mirror.Example/a__b--c.d", ("Mirror.Example/a__b--c.d", "", "")),
    ],
)
def test_references_are_taken_apart(reference, parts):
    check_reference("image", reference)
    assert split(reference) == parts


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("", "is not a name of an image"),
        ("A/b c", "'A/b c' is not a name of an image"),
        ("example.com/Upper/x:1", "is not a name of an image"),
        ("https://example.com/x", "is not a name of an image"),
        ("x:", "'' is not a tag"),
        ("x:a b", "'a b' is not a tag"),
        ("x:" + "a" * 129, "is not a tag"),
        ("x@sha256:abc", "'sha256:abc' is not a digest"),
        ("x@", "'' is not a digest"),
        ("x@sha512:" + "0" * 128, "is not a digest"),
        ("a" * 256, "is not a name of an image"),
    ],
)
def test_what_no_kubelet_would_take_is_refused_with_the_option(reference, words):
    with pytest.raises(InputError) as error:
        check_reference("gpu_verify_image", reference)
    assert words in str(error.value)
    assert str(error.value).startswith("gpu_verify_image is ")
