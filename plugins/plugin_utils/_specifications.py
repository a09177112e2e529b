# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Argument specifications of the installed collection's roles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.yaml import yaml_load

_ROLES = Path(__file__).parents[2] / "roles"
# Keys that Ansible's validator uses; the other keys are documentation.
_CHECKED = ("type", "elements", "choices", "options")


def role_options(roles: list[str]) -> dict[str, dict[str, Any]]:
    """Return the options of each role's entry point ``main``, which has all options of the role.

    :raises AnsibleError: the specification of a role cannot be read.
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
    """Return whether Ansible accepts a value for a role's option."""
    checked = {key: specification[key] for key in _CHECKED if key in specification}
    return not ArgumentSpecValidator({name: checked}).validate({name: value}).error_messages
