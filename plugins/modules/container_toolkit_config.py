# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: container_toolkit_config
short_description: Set values in the configuration of the NVIDIA Container Toolkit
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Sets single values in C(/etc/nvidia-container-runtime/config.toml). Every other byte of the file
    stays, comments and order included.
  - What stood there before is recorded on the node, and O(state=absent) puts it back.
  - Nothing has to be restarted; the toolkit reads the file whenever a container is started.
options:
  settings:
    description:
      - The values by key. A key in a section is written as C(section.key). A value is text, a
        number, true, false, or a list of text.
      - A setting that the toolkit knows is refused with a value of another type, or with one that
        it does not take. A name that no release of the toolkit knows is written, with a warning.
      - What an earlier run set and is not named any more goes back to what it was.
      - Required with O(state=present). With O(state=absent) it is needed only where the node's
        record is lost; values that equal these are then removed.
    type: dict
  state:
    description:
      - Whether the values are set. V(absent) gives the file back as it was; where somebody edited
        it since, only our own values go.
    type: str
    choices: [present, absent]
    default: present
  existed:
    description:
      - For a play that installs the toolkit first, whose packages make the file and leave it when
        they go. V(false) says that it was not there when the node was read; then O(state=absent)
        removes it, unless somebody edited it since.
    type: bool
    default: true
  toolkit_version:
    description:
      - Version of the toolkit that reads the file, such as V(1.20.0-1), whose names and values
        O(settings) are held against. Without it, they are held against those of every release
        that is known.
    type: str
    default: ""
  config_path:
    description:
      - The file. A symbolic link is followed, not replaced. It is made where it is not there.
    type: path
    default: /etc/nvidia-container-runtime/config.toml
  tomlkit_archive:
    description:
      - Internal. The module's action plugin puts the controller's C(tomlkit) here, for nodes that
        have no TOML parser.
    type: str
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
  platform:
    platforms: linux
seealso:
  - module: kubegpu.nodes.package_set
  - module: kubegpu.nodes.containerd_runtime
"""

EXAMPLES = r"""
- name: Let containers run without root, and write a log
  kubegpu.nodes.container_toolkit_config:
    toolkit_version: 1.20.0-1
    settings:
      nvidia-container-cli.no-cgroups: true
      nvidia-container-runtime.debug: /var/log/nvidia-container-runtime.log

- name: Give the file back
  kubegpu.nodes.container_toolkit_config:
    state: absent
"""

RETURN = r"""
path:
  description: The file, with links resolved.
  returned: success
  type: str
  sample: /etc/nvidia-container-runtime/config.toml
reasons:
  description: Why something was, or would be, changed.
  returned: success
  type: list
  elements: str
  sample:
    - nvidia-container-cli.no-cgroups is false, asked for is true.
diff:
  description: What changes in the file, with the lines around it; secrets covered.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: "no-cgroups = false\n"
      after: "no-cgroups = true\n"
      before_header: /etc/nvidia-container-runtime/config.toml
      after_header: /etc/nvidia-container-runtime/config.toml
"""

from dataclasses import replace
import json
import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._runtime.config_file import table
from ..module_utils._runtime.toml_parser import toml_parser
from ..module_utils._core.errors import InputError, KubegpuError
from ..module_utils._host.files import FileState, read_file, sha256
from ..module_utils._record.file_record import FileRecord, Undo
from ..module_utils._core.redact import changed_parts
from ..module_utils._core.redact import redact as redact_text
from ..module_utils._record.store import StateStore
from ..module_utils._formats.toml_redact import redact
from ..module_utils._runtime.toml_settings import (
    Parser,
    Plan,
    Seen,
    parse_text,
    plan_absent,
    plan_present,
)
from ..module_utils._toolkit.settings import Release, faults, release_of, unknown


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "settings": {"type": "dict"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "existed": {"type": "bool", "default": True},
            "toolkit_version": {"type": "str", "default": ""},
            "config_path": {
                "type": "path",
                "default": "/etc/nvidia-container-runtime/config.toml",
            },
            "state_path": {"type": "path", "default": "/var/lib/kubegpu/state.json"},
            "tomlkit_archive": {"type": "str", "no_log": True},
        },
        required_if=[("state", "present", ("settings",))],
        supports_check_mode=True,
    )
    try:
        module.exit_json(**_run(module))
    except KubegpuError as error:
        module.fail_json(msg=redact_text(str(error)))


def _run(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    parse = toml_parser(params["tomlkit_archive"], module.tmpdir)
    store = StateStore(params["state_path"])
    if module.check_mode:
        before, after, plan = _plan(params, store, parse)
    else:
        with store.transaction():
            before, after, plan = _plan(params, store, parse)
            _apply(params, store, parse, before, after, plan)
    if params["state"] == "present":
        for words in unknown(params["settings"], release_of(params["toolkit_version"])):
            module.warn(f"settings: {words}")
    result: dict[str, Any] = {
        "changed": before.content != after.content,
        "path": before.path,
        "reasons": list(plan.reasons),
    }
    if module._diff:
        result["diff"] = []
        if before.content != after.content:
            shown = changed_parts(redact(_text(before) or ""), redact(_text(after) or ""))
            result["diff"].append(
                {
                    "before": shown[0],
                    "after": shown[1],
                    "before_header": before.path,
                    "after_header": after.path,
                }
            )
    return result


def _key(params: dict[str, Any]) -> str:
    return f"container_toolkit_config::{params['config_path']}"


def _plan(
    params: dict[str, Any], store: StateStore, parse: Parser
) -> tuple[FileState, FileState, Plan]:
    key = _key(params)
    before = read_file(params["config_path"])
    record = store.record(key)
    seen = Seen(_text(before))
    target = before
    if record is not None:
        way, target = store.undo_target(key, before)
        made = way is Undo.REMOVE_LINES and record.before_sha256 is None and before.exists
        if made and record.details.get("meaning") == _meaning(seen.text or "", parse):
            # The packages of another release write the file again, with the values that it has.
            way, target = Undo.RESTORE, FileState(before.path)
        seen = Seen(
            seen.text,
            recorded=True,
            way=way,
            restored=_text(target) if way is Undo.RESTORE else None,
            ours=record.details.get("settings", {}),
            tables=tuple(record.details.get("tables", ())),
        )
    settings = params["settings"] or {}
    parse = _named(before.path, parse)
    if params["state"] == "present":
        plan = plan_present(settings, seen, parse)
        release = release_of(params["toolkit_version"])
        _check(settings, release, parse_text(seen.text or "", parse))
    else:
        plan = plan_absent(settings, seen, parse)
        if seen.recorded and seen.way is Undo.RESTORE:
            return before, target, plan
    if plan.text is None:
        return before, FileState(before.path), plan
    return before, replace(before, content=plan.text.encode()), plan


def _named(path: str, parse: Parser) -> Parser:
    """Return the parser with failures that name the file."""

    def read(text: str) -> dict[str, Any]:
        try:
            return parse(text)
        except ValueError as error:
            raise InputError(
                f"{path} is not valid TOML; it is left as it is.",
                evidence=str(error),
                next_step="Correct the file, or move it away and run again.",
            ) from error

    return read


def _check(settings: dict[str, Any], release: Release, data: dict[str, Any]) -> None:
    """Refuse a value with which the toolkit of the release would not work."""
    features = {f"features.{name}": value for name, value in table(data, ("features",)).items()}
    for fault in faults(settings, release, features):
        raise InputError(
            f"settings: {fault.words}.",
            next_step="Correct the value, or leave it out.",
        )


def _meaning(text: str, parse: Parser) -> str:
    """Return a name for what a file says, whatever its order, form and comments."""
    data = json.dumps(parse_text(text, parse), sort_keys=True, default=str)
    return sha256(data.encode())


def _ours_alone(record: FileRecord | None, before: FileState, parse: Parser) -> bool:
    """Return whether the file says what our last write left, or is the one from before us."""
    if record is None or before.sha256 == record.before_sha256:
        return True
    meaning = record.details.get("meaning")
    if not meaning:
        return False
    return record.continues(before.sha256) or meaning == _meaning(_text(before) or "", parse)


def _apply(
    params: dict[str, Any],
    store: StateStore,
    parse: Parser,
    before: FileState,
    after: FileState,
    plan: Plan,
) -> None:
    key = _key(params)
    if params["state"] == "absent":
        if before != after or store.record(key) is not None:
            store.write_undone(key, after)
        return
    made = not params["existed"] and before.content is not None and store.record(key) is None
    if made or before.content != after.content:
        ours = _ours_alone(store.record(key), before, parse)
        details = {
            "settings": dict(plan.ours),
            "tables": list(plan.tables),
            # Empty: somebody else's values are in it, and it may never go as a whole.
            "meaning": _meaning(_text(after) or "", parse) if ours else "",
        }
        first = FileState(before.path) if made else before
        record = store.write_recorded(key, first, after, details)
        if made:
            folder = os.path.dirname(before.path)
            store.put_record(key, replace(record, made_directories=(folder,)))


def _text(state: FileState) -> str | None:
    if state.content is None:
        return None
    try:
        return state.content.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{state.path} is not UTF-8 text; it is left as it is.",
            evidence=str(error),
            next_step="Correct the file, or move it away and run again.",
        ) from error


if __name__ == "__main__":
    main()
