# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of a task from the mappings of a role: its proxies and its repository. Pure.

They can have passwords, which no plan has. Therefore a task gets them next to the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.proxy_options import PROXIES
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import MARK, addresses

_LOGIN = re.compile(r"[a-z]+://([^/]+@)")
_CA_FILE = "ca_file"


def with_proxies(options: Mapping[str, Any], more: Iterable[str] = ()) -> dict[str, Any]:
    """Return the options of a task with those that its ``proxies`` stand for.

    :param options: ``proxies`` has mappings. Of a key that several have, the last value counts;
        None is "not set". An option of the task itself counts first.
    :param more: the names of more keys than the proxies.
    :raises InputError: ``proxies`` is no list of mappings.
    """
    found = {name: value for name, value in options.items() if name != "proxies"}
    merged: dict[str, Any] = {}
    given = options.get("proxies") or ()
    if isinstance(given, (str, Mapping)) or not all(isinstance(one, Mapping) for one in given):
        raise InputError("proxies has to be a list of mappings.", next_step="Correct the task.")
    for mapping in given:
        merged.update({name: value for name, value in mapping.items() if value is not None})
    for name in (*PROXIES, *more):
        if not found.get(name) and merged.get(name):
            found[name] = merged[name]
    return found


def with_repository(options: Mapping[str, Any], key: str | None) -> dict[str, Any]:
    """Return the options of ``package_repository`` with those that its ``settings`` stand for.

    :param options: the addresses are those of a plan: without user, password and query.
    :param key: the text of ``settings.key_file``.
    :raises InputError: ``proxies`` is no list of mappings.
    """
    found = with_proxies(options, (_CA_FILE,))
    settings = found.pop("settings", None)
    if settings is None:
        return found
    own, own_key = settings.get("url") or "", settings.get("key_url") or ""
    found["url"] = _restored(str(found.get("url") or ""), own)
    if found.get("keyring"):
        # The distribution's own key is on the node already.
        for name in ("key_url", "key_fingerprints"):
            found.pop(name, None)
    elif key is not None:
        found["key"] = key
        found.pop("key_url", None)
    else:
        # By default the key is in the repository.
        found["key_url"] = _restored(str(found.get("key_url") or own_key), own_key or own)
    return found


def _restored(shown: str, given: str) -> str:
    """Return an address of a plan with user, password and query of the address that was given.

    The plan can have replaced a part of it, or can have added one.
    """
    given = given.rstrip("/")
    if addresses(given, True) == shown:
        return given
    login = _LOGIN.match(given)
    query = given[given.find("?") :] if "?" in given else ""
    text = shown.replace(f"://{MARK}@", f"://{login[1] if login else ''}")
    return text.replace(f"?{MARK}", query)
