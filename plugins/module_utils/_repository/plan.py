# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a package repository: the files to write. Nothing is read or written here.

Earlier entries for the same repository are disabled in their own files, line by line, so that this
can be undone after other edits (see :mod:`comments`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .._core.errors import InputError
from .._core.redact import redact, secrets
from .._formats.openpgp import Keys, read_keys
from .._record.file_record import Undo
from .addresses import host
from .types import CONFIGURATION, EARLIER, KEY, SOURCES, Change, Plan, Request, State

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")


_URL = re.compile(r"(?P<scheme>https?|file|copy)(?P<colon>:/+)(?P<rest>\S+)\Z", re.IGNORECASE)


_FINGERPRINT = re.compile(r"(?:[0-9A-F]{40}|[0-9A-F]{64})\Z")


_CONTROL = re.compile(r"[\x00-\x1f\x7f\"]")


_HOST = re.compile(r"[A-Za-z0-9._:%-]*\Z")


_COMPONENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._/-]*\Z")


_PUBLIC = 0o644


_PRIVATE = 0o600


def check(request: Request) -> Keys:
    """Check the request; return the keys that the entry will trust.

    :raises InputError: the request is not valid, or a key is not the expected one.
    """
    if not _NAME.match(request.name):
        raise InputError(
            f"The name {request.name!r} cannot be used for files of {request.format.name}.",
            evidence=f"{request.format.name} ignores a source file whose name holds other "
            "characters",
            next_step="Use letters, digits, '-' and '_', beginning with a letter or digit.",
        )
    if not request.present:
        return Keys()
    _check_addresses(request)
    if bool(request.key) == bool(request.keyring):
        raise InputError(
            "A repository needs its key: as key, or as keyring, and not both.",
            next_step="Set key and key_fingerprints, or keyring.",
        )
    if request.keyring:
        return _check_keyring(request)
    keys = read_keys(request.key.encode("utf-8", "surrogateescape"))
    check_fingerprints(
        keys,
        request.key_fingerprints,
        "The repository's key is not the expected one; nothing was written.",
    )
    return keys


def check_fingerprints(keys: Keys, wanted: Sequence[str], cause: str) -> None:
    """Check that all keys of a file are expected: the owner of each of them can sign.

    :raises InputError: one is not; it says ``cause``.
    """
    accepted = _accepted(wanted)
    seen = keys.fingerprints
    if any(text not in accepted for text in seen):
        raise InputError(
            cause,
            evidence=f"expected {', '.join(accepted)}; the key file holds {', '.join(seen)}",
            next_step="If the publisher has a new key, compare its fingerprint with what they "
            "publish elsewhere and add it to key_fingerprints. Otherwise distrust the place "
            "that the key was read from.",
        )


def _check_keyring(request: Request) -> Keys:
    if not re.match(r"/[^\s\"\[\]]+\Z", request.keyring):
        raise InputError(
            "keyring is not the path of a file on the node.",
            evidence=repr(request.keyring),
            next_step="Give an absolute path without spaces.",
        )
    if request.keyring_key is None:
        raise InputError(
            f"The key file {request.keyring} is not on the node; nothing was written.",
            next_step="Install the package that brings it (debian-archive-keyring, "
            "ubuntu-keyring), or give key and key_fingerprints instead.",
        )
    keys = read_keys(request.keyring_key)
    seen = keys.fingerprints
    if not request.key_fingerprints:
        return keys
    accepted = _accepted(request.key_fingerprints)
    # The owner of any key in the file can sign, so that all of them have to be expected.
    foreign = [text for text in seen if text not in accepted]
    if foreign or not seen:
        raise InputError(
            f"The key file {request.keyring} has other keys than the expected ones; nothing was "
            "written.",
            evidence=f"expected {', '.join(accepted)}; not among them: {', '.join(foreign)}",
            next_step="Correct keyring or key_fingerprints. Where the file is the distribution's "
            "own, which has several keys and gets new ones, leave key_fingerprints out.",
        )
    return keys


def plan(request: Request, state: State) -> Plan:
    """Return the plan that sets the repository up, or removes it.

    :raises InputError: the request is not valid.
    """
    keys = check(request)
    return _present(request, state, keys) if request.present else _absent(request, state)


def _check_addresses(request: Request) -> None:
    if not request.url:
        raise InputError("A repository needs a URL.", next_step="Set url.")
    for option, url in (("url", request.url), *(("replaces", url) for url in request.replaces)):
        if not _URL.match(url):
            raise InputError(
                f"{option} is not the URL of a package repository.",
                evidence=redact(url),
                next_step="Give it as http://, https:// or file:/ and without spaces.",
            )
    for option, url in (("http_proxy", request.http_proxy), ("https_proxy", request.https_proxy)):
        if url and not re.match(r"(?:https?|socks5h)://[^\s\"]+\Z", url):
            raise InputError(
                f"{option} is not the URL of a proxy.",
                evidence=redact(url),
                next_step="Give it as http://HOST:PORT.",
            )
    named = host(request.url)
    if not _HOST.match(named):
        raise InputError(
            "url names a host with characters that no host has.",
            evidence=repr(named),
            next_step="Give its name or address.",
        )
    for component in request.components:
        if not _COMPONENT.match(component):
            raise InputError(
                "components holds something that is not a component of a repository.",
                evidence=repr(component),
                next_step="Give words such as main or non-free-firmware.",
            )
    for option, text in (("suite", request.suite), ("ca_file", request.ca_file)):
        if _CONTROL.search(text):
            raise InputError(f"{option} holds a quote or a control character.")
    request.format.check(request)


def _accepted(texts: Sequence[str]) -> tuple[str, ...]:
    accepted = tuple(re.sub(r"[\s:]", "", text).upper().removeprefix("0X") for text in texts)
    for text, given in zip(accepted, texts):
        if not _FINGERPRINT.match(text):
            raise InputError(
                "key_fingerprints holds something that is not a full fingerprint.",
                evidence=given,
                next_step="Give all 40 hexadecimal digits: short key ids can be forged.",
            )
    if not accepted:
        raise InputError(
            "No fingerprint of an acceptable key is given.", next_step="Set key_fingerprints."
        )
    return accepted


def _present(request: Request, state: State, keys: Keys) -> Plan:
    seen = keys.fingerprints
    reasons: list[str] = []
    changes: list[Change] = []
    late: list[Change] = []
    key = (
        # Remove the key of an earlier request.
        _undo(request, state, KEY, request.key_file)
        if request.keyring
        else _change(state, KEY, request.key_file, keys.armored, _PUBLIC)
    )
    if key and request.keyring:
        late = [key]
        reasons.append(f"{request.key_file} is no longer requested.")
    elif key:
        changes.append(key)
        reasons.append(f"{request.key_file} is not the key {', '.join(seen)}.")
    configuration = request.format.configuration(request)
    if configuration:
        mode = _PRIVATE if secrets(configuration) else _PUBLIC
        change = _change(
            state, CONFIGURATION, request.configuration_file, configuration, mode, lines=True
        )
        if change:
            changes.append(change)
            reasons.append(
                f"{request.configuration_file} does not say how {host(request.url)} is reached."
            )
    earlier, disabled = _earlier(request, state)
    changes.extend(earlier)
    reasons.extend(
        f"{entry['file']} gives {entry['entry']}: two entries for one repository make "
        f"{request.format.name} refuse both, or mix them up."
        for entry in disabled
    )
    text = request.format.sources(request, state)
    mode = _PRIVATE if secrets(text) else _PUBLIC
    sources = _change(state, SOURCES, request.sources_file, text, mode)
    if sources:
        changes.append(sources)
        verb = "is not there" if state.file(request.sources_file).text is None else "differs"
        reasons.append(redact(f"{request.sources_file} {verb}."))
    if not configuration:
        change = _undo(request, state, CONFIGURATION, request.configuration_file)
        if change:
            changes.append(change)
            reasons.append(f"{request.configuration_file} is no longer requested.")
    # After all entries that are signed by it.
    changes.extend(late)
    return Plan(tuple(changes), disabled, seen, tuple(reasons))


def _absent(request: Request, state: State) -> Plan:
    ours = (request.sources_file, request.configuration_file, request.key_file)
    changes: list[Change] = []
    reasons: list[str] = []
    candidates = [
        (SOURCES, request.sources_file),
        *((EARLIER, path) for path in sorted(state.files) if path not in ours),
        (CONFIGURATION, request.configuration_file),
        (KEY, request.key_file),
    ]
    for kind, path in candidates:
        if kind == KEY and _still_needed(request, state):
            reasons.append(f"{path} is kept: another entry is signed by it.")
            continue
        change = _undo(request, state, kind, path)
        if change is None:
            continue
        changes.append(change)
        current = state.file(path).text
        if change.text != current:
            edited = state.file(path).undo is Undo.REMOVE_LINES
            done = "the lines of this collection are removed, other edits are kept"
            reasons.append(f"{path}: {done if edited else 'restored'}.")
    return Plan(tuple(changes), (), (), tuple(reasons))


def _still_needed(request: Request, state: State) -> bool:
    """Return whether another entry is signed by the key file of the request."""
    return any(
        request.format.signs(path, seen.text, request.key_file)
        for path, seen in state.files.items()
        if seen.text is not None and path not in (request.sources_file, request.key_file)
    )


def _undo(request: Request, state: State, kind: str, path: str) -> Change | None:
    """Return the change that undoes an earlier one of the file; None if there was none."""
    seen = state.file(path)
    if not seen.recorded and (seen.text is None or kind in (CONFIGURATION, KEY)):
        # A key without a record is removed only together with the entry for it.
        ours = kind == KEY and seen.text is not None and _has_our_stanza(request, state)
        return Change(kind, path, None, None, undo=True) if ours else None
    if seen.recorded and seen.undo is Undo.RESTORE:
        return Change(kind, path, seen.restored, seen.restored_mode, undo=True)
    if seen.recorded and seen.undo is Undo.NOTHING:
        return Change(kind, path, seen.text, seen.mode, undo=True)
    text = seen.text
    if text is None:
        return Change(kind, path, None, None, undo=True)
    rest: str | None
    if kind == KEY:
        rest = None
    elif kind == EARLIER:
        rest = request.format.enable(text, request.name)
    elif kind == SOURCES:
        rest = request.format.without_ours(request, text)
    else:
        rest = _without_lines(text, seen.details.get("lines", ()))
    if not seen.recorded and rest == text:
        return None
    return Change(kind, path, rest, seen.mode, undo=True)


def _has_our_stanza(request: Request, state: State) -> bool:
    text = state.file(request.sources_file).text
    return text is not None and request.format.without_ours(request, text) != text


def _without_lines(text: str, ours: Sequence[str]) -> str | None:
    rest = "".join(line for line in text.splitlines(keepends=True) if line.rstrip() not in ours)
    return rest if rest.strip() else None


def _earlier(request: Request, state: State) -> tuple[list[Change], tuple[dict[str, str], ...]]:
    # With the distribution's own keys, the entry is a part of its archive next to other entries.
    own = () if request.keyring else request.format.own(request)
    addresses = (*own, *request.replaces)
    ours = (request.sources_file, request.configuration_file, request.key_file)
    changes: list[Change] = []
    found: list[dict[str, str]] = []
    for path in sorted(state.files):
        seen = state.file(path)
        if path in ours or seen.text is None:
            continue
        # First enable what was disabled for an earlier request.
        plain = request.format.enable(seen.text, request.name)
        text, disabled = request.format.disable(
            plain, path, request.name, addresses, state.architecture
        )
        if text == seen.text:
            continue
        already = request.format.disable(
            seen.text, path, request.name, addresses, state.architecture
        )[1]
        found.extend({"file": path, "entry": redact(entry)} for entry in already)
        if disabled or not seen.recorded:
            changes.append(Change(EARLIER, path, text, seen.mode))
        else:
            change = _undo(request, state, EARLIER, path)
            if change:
                changes.append(change)
    return changes, tuple(found)


def _change(
    state: State, kind: str, path: str, text: str, mode: int, *, lines: bool = False
) -> Change | None:
    seen = state.file(path)
    if seen.text == text and seen.mode == mode:
        return None
    details = {"lines": text.splitlines()} if lines else {}
    return Change(kind, path, text, mode, details=details)
