# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Argument specs of requests, and the reader of options: Ansible's own validator.

A module and the filter of its plan read the same spec, so that both accept the same values. The
validator's text for a wrong type lists booleans in no fixed order and names no variable of a role,
so that the reader's own sentence is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .checks import wrong_value
from .errors import InputError

Spec = Mapping[str, Mapping[str, Any]]
# The type of an option by the type of its default. A boolean is an integer, too.
_KINDS = ((bool, "bool"), (int, "int"), (str, "str"), (Mapping, "dict"), ((list, tuple), "list"))
_TYPES = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "list": "a list",
    "dict": "a mapping",
    "str": "a text",
    "path": "a path",
}
_ELEMENTS = {"str": "texts", "dict": "mappings", "int": "whole numbers"}
#: Options of the plans that are keys of the variable ``<role>_repository``.
REPOSITORY_KEYS = {
    "manage_repository": "repository.manage",
    "repository_name": "repository.name",
    "repository_url": "repository.url",
    "repository_suite": "repository.suite",
    "repository_key_url": "repository.key_url",
    "key_fingerprints": "repository.key_fingerprints",
}
#: The mapping for the pods of all roles. That of one role, ``<role>_pods``, has the same keys.
PODS = "kubegpu_pods"
_POD_ROLES = (
    "nvidia_device_plugin", "nvidia_dra_driver", "amd_device_plugin", "intel_device_plugin",
    "gpu_monitoring",
)  # fmt: skip
_POD_KEYS = (
    "annotations", "image_pull_policy", "max_unavailable", "node_selector", "priority_class",
    "pull_secret", "resources", "tolerations",
)  # fmt: skip


def variable_of(role: str, option: str) -> str:
    """Return the variable of an option, such as ``nvidia_driver_repository.url``."""
    if role in _POD_ROLES and option in _POD_KEYS:
        return f"{role}_pods.{option}"
    return f"{role}_{REPOSITORY_KEYS.get(option, option)}"


def argument_spec(request: Any, **rules: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the argument spec of a dataclass, with the type and the default of each field.

    :param rules: by field, what its default does not tell, such as choices.
    """
    spec: dict[str, dict[str, Any]] = {}
    for one in fields(request):
        default: Any = one.default if one.default_factory is MISSING else one.default_factory()
        kind = next((name for known, name in _KINDS if isinstance(default, known)), "raw")
        rule: dict[str, Any] = {"type": kind, "default": default, **rules.get(one.name, {})}
        if isinstance(default, tuple):
            rule["default"] = list(default)
        if rule["type"] == "list":
            rule.setdefault("elements", "str")
        spec[one.name] = rule
    return spec


def read_arguments(spec: Spec, given: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of all options of a spec. Other options are ignored; None is "not set".

    :param prefix: what makes the name of the user's variable from that of the option.
    :raises InputError: a value is wrong.
    """
    values = {name: _prepared(rule, given.get(name)) for name, rule in spec.items()}
    found = _validate(spec, values)
    if found is None:
        # The validator names the option only in its text.
        name = next(
            name
            for name, rule in spec.items()
            if _validate({name: rule}, {name: values[name]}) is None
        )
        role, of_role = prefix[:-1], prefix.endswith("_")
        variable = variable_of(role, name) if of_role else f"{prefix}{name}"
        _check_keys(variable, spec[name], values[name])
        raise wrong_argument(variable, spec[name], values[name])
    return {name: _stripped(found[name]) for name in spec}


def _validate(spec: Spec, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the values with the types of their rules; None if one of them is wrong."""
    given = {name: value for name, value in values.items() if value is not None}
    try:
        result = ArgumentSpecValidator(dict(spec)).validate(given)
    except TypeError:
        # Of a mapping with rules for its keys, where the value is another, such as 0.
        return None
    return None if result.error_messages else dict(result.validated_parameters)


def _stripped(value: Any) -> Any:
    """Return a list as a tuple: Ansible splits a text at commas and keeps the spaces."""
    if not isinstance(value, list):
        return value
    return tuple(one.strip() if isinstance(one, str) else one for one in value)


def _check_keys(name: str, rule: Mapping[str, Any], value: Any) -> None:
    """Find the wrong key of a mapping, or of a mapping in a list.

    :raises InputError: a key is unknown or missing, or has a wrong value.
    """
    options = rule.get("options")
    if not options:
        return
    if isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            _check_keys(f"{name}[{number}]", rule, item)
    elif isinstance(value, Mapping):
        unknown = [f"{name}.{key}" for key in value if key not in options]
        if unknown:
            raise InputError(
                f"{name} has to be a mapping made of {', '.join(options)}.",
                evidence=f"{', '.join(unknown)} is unknown",
            )
        read_arguments(options, value, f"{name}.")


def _prepared(rule: Mapping[str, Any], value: Any) -> Any:
    """Return a value as the validator takes it. A module of Ansible accepts no more than that."""
    if isinstance(value, (Mapping, list, tuple)):
        return _built_in(value)
    if isinstance(value, str) and rule.get("type", "str") == "str" and "choices" not in rule:
        return value.strip()
    return value


def _built_in(value: Any) -> Any:
    """Return a value in Python's own containers.

    The validator copies what it gets, and of a filter's argument that is Ansible's whole template
    engine, since its containers make their values only when they are read.
    """
    if isinstance(value, Mapping):
        return {key: _built_in(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_built_in(one) for one in value]
    return value


def expected(rule: Mapping[str, Any]) -> str:
    """Return what a value of an option has to be."""
    kind = str(rule.get("type", "str"))
    if "choices" in rule:
        choices = ", ".join(str(choice) for choice in rule["choices"])
        return f"made of {choices}" if kind == "list" else f"one of {choices}"
    text = _TYPES.get(kind, kind)
    inner = rule.get("elements")
    text = f"{text} of {_ELEMENTS[inner]}" if inner in _ELEMENTS else text
    return f"{text} made of {', '.join(rule['options'])}" if "options" in rule else text


def wrong_argument(name: str, rule: Mapping[str, Any], value: Any) -> InputError:
    """Return the error of a value that does not fit its rule."""
    if rule.get("type") == "dict" and not isinstance(value, Mapping):
        # Whoever writes a mapping wrongly may show what is in it, such as a token.
        kind = "a list" if isinstance(value, (list, tuple)) else "a text"
        return InputError(
            f"{name} has to be {expected(rule)}.",
            evidence=f"{name}: {kind}",
            names={"variable": name},
        )
    return wrong_value(name, expected(rule), value)
