# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specifications of the collection's roles, as they are installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.yaml import yaml_load

_ROLES = Path(__file__).parents[2] / "roles"
# What Ansible's validator takes; the rest of a specification is documentation.
_CHECKED = ("type", "elements", "choices", "options")


def role_options(roles: list[str]) -> dict[str, dict[str, Any]]:
    """Return the options of each role's entry point ``main``, which has all of them.

    :raises AnsibleError: the file of a role is not there or cannot be read.
    """
    found = {}
    for role in roles:
        path = _ROLES / role / "meta" / "argument_specs.yml"
        try:
            data = yaml_load(path.read_text(encoding="utf-8"))
            found[role] = data["argument_specs"]["main"]["options"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise AnsibleError(
                f"{path} cannot be read: {error}. Next step: install the collection again."
            ) from error
    return found


def fits(name: str, specification: Mapping[str, Any], value: Any) -> bool:
    """Return whether a value is one of the specification, as Ansible checks it for a role."""
    checked = {key: specification[key] for key in _CHECKED if key in specification}
    return not ArgumentSpecValidator({name: checked}).validate({name: value}).error_messages
