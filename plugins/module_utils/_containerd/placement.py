# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where settings go if a Kubernetes distribution generates the configuration. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Callable

from .._core.errors import KubegpuError
from .._formats.toml_edit import Document
from .._runtime.config_file import ConfigFile, Parser, parse_text, table
from .config import absorbed, fold, imports_path
from .data import CRI_TABLE, DEEP_MERGE, RUNC_SHIM, Version
from .distributions import PLAIN, Distribution, expand_variables
from .template_block import BEGIN, without_managed_block
from .types import Request


@dataclass(frozen=True)
class Placement:
    """The file that takes this module's settings.

    ``generated``: the distribution generates the root file. The settings then go to ``own_path``,
    which containerd imports, the distribution merges (``merged``), or renders (``template``).
    """

    distribution: Distribution
    generated: bool = False
    own_path: str = ""
    merged: bool = False
    template: bool = False


def find_placement(
    distribution: Distribution,
    root: ConfigFile,
    version: Version,
    read: Callable[[str], bytes | None],
    request: Request,
) -> Placement:
    """Return where settings go if the distribution generated the file ``root``.

    :raises KubegpuError: the generated file takes no settings from other files.
    """
    if request.layout == "in_place":
        raise KubegpuError(
            f"{root.path} is regenerated whenever {distribution.name} starts, so it is not edited.",
            next_step="Leave layout at auto.",
        )
    config = root.version
    template = distribution.templates.get(config)
    if template is not None and BEGIN.encode() in (read(template) or b""):
        return Placement(distribution, True, template, merged=True, template=True)
    drop_in = distribution.drop_ins.get(config)
    if request.drop_in_path != Request.drop_in_path:
        drop_in = request.drop_in_path
    if drop_in is not None:
        if distribution.merged_into and imports_path(
            root, request.config_path, distribution.merged_into, version
        ):
            return Placement(distribution, True, drop_in, merged=True)
        if version >= DEEP_MERGE and imports_path(root, request.config_path, drop_in, version):
            return Placement(distribution, True, drop_in)
    if template is not None:
        return Placement(distribution, True, template, merged=True, template=True)
    raise KubegpuError(
        f"{root.path}, which {distribution.name} writes, takes no settings from a file of our own.",
        evidence=f"config version {config}, imports = {root.data.get('imports', [])}",
        next_step=f"Upgrade {distribution.name}, or configure the handler by its own means.",
    )


def as_generated(
    placement: Placement,
    files: Iterable[ConfigFile],
    own: ConfigFile,
    parse: Parser,
    program: str | None,
) -> tuple[ConfigFile, ...]:
    """Return the files as they will be after the next start of the distribution.

    :param own: the file at ``own_path``, current or planned.
    :param program: program of the handler that the distribution adds itself.
    """
    found = list(files)
    for index, file in enumerate(found):
        if index == 0 or file.path == placement.distribution.merged_into:
            found[index] = replace(file, generated=True)
    if placement.template:
        text = without_managed_block(found[0].text or "")
        found[0] = replace(found[0], text=text, data=parse_text(text, parse))
    if program is not None:
        found[0] = _with_handler(found[0], program, parse, placement)
    if placement.merged and own.text is not None and own.path not in {file.path for file in found}:
        found.append(own)
    return tuple(found)


def _with_handler(
    root: ConfigFile, program: str, parse: Parser, placement: Placement
) -> ConfigFile:
    """Return the generated file with the handler that the distribution adds at startup."""
    names = [
        name for name, paths in placement.distribution.auto_handlers.items() if program in paths
    ]
    base = ("plugins", CRI_TABLE[root.version], "containerd", "runtimes")
    document = Document(root.text or "")
    for name in names:
        if table(root.data, (*base, name)):
            continue
        runc = fold(table(root.data, (*base, "runc", "options")))
        document = document.set((*base, name, "runtime_type"), RUNC_SHIM)
        document = document.set((*base, name, "options", "BinaryName"), program)
        if "systemdcgroup" in runc:
            document = document.set(
                (*base, name, "options", "SystemdCgroup"), runc["systemdcgroup"]
            )
    return replace(root, text=document.text, data=parse_text(document.text, parse))


def as_rendered(
    placement: Placement, files: tuple[ConfigFile, ...], parse: Parser
) -> tuple[ConfigFile, ...]:
    """Return the files as containerd reads them."""
    if placement.distribution is PLAIN:
        return files
    if placement.merged:
        files = absorbed(files, placement.own_path, parse)
    if not placement.distribution.variables:
        return files
    return tuple(_expanded(file, placement.distribution, parse) for file in files)


def _expanded(file: ConfigFile, distribution: Distribution, parse: Parser) -> ConfigFile:
    if file.text is None:
        return file
    text = expand_variables(file.text, distribution.variables)
    return replace(file, text=text, data=parse_text(text, parse))
