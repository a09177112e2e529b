# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""References of container images, as registries and the kubelet read them. Pure.

Source: github.com/distribution/reference, the grammar in reference.go.
"""

from __future__ import annotations

import re

from .._core.errors import InputError

_HOST = r"(?:localhost|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:.]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*\Z")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_LONGEST = 255


def is_tag(text: str) -> bool:
    """Return whether a text can be an image's tag."""
    return bool(_TAG.match(text))


def is_digest(text: str) -> bool:
    """Return whether a text is an image's digest, ``sha256:`` with 64 hexadecimal digits."""
    return bool(_DIGEST.match(text))


def split(reference: str) -> tuple[str, str, str]:
    """Return name, tag and digest of a reference; tag and digest are empty where it has none."""
    rest, _at, digest = reference.partition("@")
    name, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        # The colon is that of a port.
        name, tag = rest, ""
    return name, tag, digest


def check_reference(option: str, reference: str) -> None:
    """See that a reference is one: ``[registry[:port]/]name[:tag][@sha256:...]``.

    :param option: the option that it comes from.
    :raises InputError: where it is none; a kubelet would say InvalidImageName, on each node.
    """
    name, tag, digest = split(reference)
    wrong = ""
    if not _NAME.match(name) or len(name) > _LONGEST:
        wrong = f"{name!r} is not a name of an image: small letters, digits, '.', '_', '-' and '/'"
    elif (tag or reference[len(name) :].startswith(":")) and not is_tag(tag):
        wrong = f"{tag!r} is not a tag"
    elif (digest or "@" in reference) and not is_digest(digest):
        wrong = f"{digest!r} is not a digest, which is sha256: with 64 small hexadecimal digits"
    if wrong:
        raise InputError(
            f"{option} is {reference!r}, and no image can be called so: {wrong}.",
            next_step="Give [registry/]name:tag or [registry/]name@sha256:<64 digits>.",
        )


def check_pinned(prefix: str, image: str, version: str, digest: str, example: str) -> None:
    """Check the options of an image that a role deploys: name, tag and digest.

    :param prefix: of the role's variables.
    :param example: a tag.
    :raises InputError: an option is wrong, or no version is pinned.
    """
    _name, tag, in_name = split(image)
    if tag or in_name:
        raise InputError(
            f"{prefix}image is {image!r}, with a version in it",
            next_step=f"Give that as {prefix}version or {prefix}digest.",
        )
    check_reference(f"{prefix}image", image)
    if digest:
        if not is_digest(digest):
            raise InputError(
                f"{prefix}digest is {digest!r}, and has to be sha256: with 64 small hex digits"
            )
        return
    if not is_tag(version) or version == "latest":
        raise InputError(
            f"{prefix}version is {version!r}, which pins no version",
            next_step=f"Give a release's tag, such as {example}, or {prefix}digest.",
        )
