# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a driver's module was not built. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._core.finding import POSSIBLE, Finding
from .._core.versions import upstream_numbers
from .._distro.kernel_packages import kernel_headers
from .._distro.upstream import package_base
from .._nvidia.runfile import LOG
from .codes import DISK_FULL, NO_HEADERS
from .common import build_failed
from .evidence_types import DkmsBuild, Evidence, find_line
from .rules.build_messages import NO_HEADERS_TEXT
from .rules.builds import KNOWN_FIXES, KnownFix

_ERROR_LINES = (
    re.compile(r"^\S[^\s:]*:\d+(?::\d+)?: (?:fatal )?error: "),
    re.compile(r"^ERROR: modpost: "),
    re.compile(r"^ERROR: Kernel configuration is invalid"),
    re.compile(r"^\S*(?:gcc|cc1|ld|cc)(?:-\d+)?: (?:fatal )?error: "),
    re.compile(r"undefined reference to|undefined!$"),
    re.compile(r"No space left on device|[Nn]ot found$|Cannot allocate memory"),
    re.compile(r": fatal error: |: error: "),
    re.compile(
        r"\.[ch]:\d+:\d+: (?:\w+ )?(?:Fehler|erreur|errore|erro|错误|エラー|ошибка) ?[:\uff1a]"
    ),
    re.compile(r"^(?:make(?:\[\d+\])?: )?\*\*\* (?!.*Error \d+$)"),
    re.compile(r"^make(?:\[\d+\])?: \*\*\* "),
)
_LOG_HEAD = re.compile(r"for kernel (?P<kernel>\S+)")
_NO_HEADERS = re.compile(NO_HEADERS_TEXT)
_BAD_BUILD = re.compile(r"Bad return status for module build on kernel: (\S+)")
_RUNFILE_BUILD = re.compile(r"ERROR: An error occurred while performing the step")
NO_MODULE = re.compile(r"Module (nvidia\S*) not found in directory (\S+)")
# What nix and quotes put in front of a line.
_PREFIX = re.compile(r"^\s{0,12}(?:[\w.-]{1,40})?> {1,2}")
_TREE = re.compile(r"/var/lib/dkms/[\w.-]{1,80}/\d[\w.-]{1,40}")
_VERSIONS = (
    re.compile(r"/var/lib/dkms/[\w.-]{1,80}/(\d{3}\.[\d.]{2,12}\d)"),
    re.compile(r"NVIDIA-Linux-[\w-]{1,20}-(\d{3}\.[\d.]{2,12}\d)"),
    re.compile(r"nvidia-(?:open|x11)-[\d.]{1,16}-(\d{3}\.[\d.]{2,12}\d)"),
)
_KERNELS = (
    re.compile(r"module build on kernel: (\S{1,80})"),
    re.compile(r"/(?:linux|kernel)-headers-([^\s/'\"]{1,80})"),
    re.compile(r"-linux-(\d{1,2}\.\d{1,3}[\d.]{0,8}?)-dev/"),
    re.compile(r"/lib/modules/(\d[^\s/]{1,80})/"),
)
_OLDER = (
    "",
    "The first error stands further up in the log. If the driver is older than the kernel, take a "
    "newer version of it that knows this kernel, or boot the kernel that was there before.",
)
_NO_SPACE = re.compile(r"No space left on device")

# Folders of modules that DKMS builds, and the names of those for GPUs.
_MODULES = re.compile(r"/var/lib/dkms/([\w.+-]{1,80})/")
_OF_GPUS = re.compile(r"nvidia|amd|i915|intel|xe\b")


def is_foreign(text: str) -> bool:
    """Return whether DKMS builds in the text modules of other devices only."""
    names = _MODULES.findall(text)
    return bool(names) and not any(_OF_GPUS.search(name.lower()) for name in names)


def not_built(evidence: Evidence) -> bool:
    return any(
        pattern.search(text)
        for pattern, text in (
            (_BAD_BUILD, evidence.output),
            (_RUNFILE_BUILD, evidence.output),
            (_NO_HEADERS, evidence.output),
            (_NO_SPACE, evidence.output),
            (NO_MODULE, evidence.modprobe),
        )
    )


def first_error(log: str) -> str:
    """Return the first error in a build log, with file and line.

    More specific kinds of errors take precedence.
    """
    lines = log.splitlines()
    for pattern in _ERROR_LINES:
        for line in lines:
            if pattern.search(line):
                return line.strip()
    return ""


def explain_log(text: str) -> Finding:
    """Return the finding for a build that failed, from its log or the output of an installer."""
    log = "\n".join(_PREFIX.sub("", line) for line in text.splitlines())
    version = _first(_VERSIONS, log)
    kernel = _first(_KERNELS, log)
    error = first_error(log) or find_line(log, _BAD_BUILD)
    fix = known_fix(log, version, kernel or None, None)
    path = _log_path(log) or _tree_log(log) or (LOG if _RUNFILE_BUILD.search(log) else "")
    found = build_failed(
        "DKMS" if "dkms" in log.lower() else "A build",
        version,
        kernel or "unknown",
        (error or "the text has no error of the compiler") + (f"; log: {path}" if path else ""),
        fix=(fix.why, fix.step) if fix else _OLDER,
        details={"kernel": kernel, "version": version, "error": error, "log": path},
    )
    return found if fix and fix.proven else replace(found, confidence=POSSIBLE)


def _first(patterns: Sequence[re.Pattern[str]], log: str) -> str:
    found = (pattern.search(log) for pattern in patterns)
    return next((match[1] for match in found if match), "")


def _tree_log(log: str) -> str:
    """Return the log of a DKMS tree that a line names."""
    match = _TREE.search(log)
    return f"{match[0]}/build/make.log" if match else ""


def log_kernel(log: str) -> str | None:
    """Return the kernel of a make.log."""
    match = _LOG_HEAD.search(log[:500])
    return match["kernel"] if match else None


def known_fix(
    log: str, version: str, kernel: str | None, kernel_module: str | None
) -> KnownFix | None:
    """Return the known fix for a failed build, if there is one."""
    branch, *_rest = upstream_numbers(version) or (0,)
    release = upstream_numbers(kernel)[:2] or (0, 0)
    for fix in KNOWN_FIXES:
        lowest, highest = fix.branches
        if (
            (not lowest or branch >= lowest)
            and (not highest or branch <= highest)
            and release >= fix.kernel_from
            and (not fix.kernel_module or kernel_module in (None, fix.kernel_module))
            and _matches(fix, log)
        ):
            return fix
    return None


def _matches(fix: KnownFix, log: str) -> bool:
    match = re.search(fix.pattern, log)
    # Two searches: a single pattern would backtrack to every line of the first part.
    if match is None or (fix.unless and re.search(fix.unless, log)):
        return False
    return not fix.then or bool(re.search(fix.then, log[match.end() :]))


def _failed_builds(evidence: Evidence) -> list[DkmsBuild]:
    """Return the failed builds, most relevant first."""
    match = _BAD_BUILD.search(evidence.output)
    named = match[1] if match else None
    failed = [build for build in evidence.dkms if build.state == "failed"]
    failed.sort(
        key=lambda build: (
            build.kernel != named,
            build.version != evidence.wanted,
            build.kernel != evidence.kernel,
        )
    )
    return failed


def missing_headers(text: str, facts: Mapping[str, Any]) -> Finding | None:
    """Return the finding of missing headers in a text, with the packages of its kernel.

    :param facts: the fact ``gpu_node`` of the node of the text, or a part of it.
    """
    system = package_base(facts.get("os") or {})
    return _no_headers(
        Evidence(
            output=text,
            kernel=system.get("kernel"),
            os_id=system.get("id") or "",
            family=system.get("family") or "",
            arch=system.get("arch") or "",
        )
    )


def _named_kernel(match: re.Match[str] | None) -> str:
    # Some give DKMS the name of the package of the headers.
    name = (match["kernel"] or match["folder"] or "") if match else ""
    return re.sub(r"^(?:linux-(?:headers|image)-)+", "", name)


def _no_headers(evidence: Evidence) -> Finding | None:
    text = f"{evidence.output}\n{evidence.modprobe}"
    match = _NO_HEADERS.search(text)
    # A build that ran had headers, so its kernel's headers are not missing.
    ran = [build for build in _failed_builds(evidence) if first_error(build.log)]
    if match is None or _BAD_BUILD.search(text):
        if ran and (evidence.container or ran[0].kernel in (evidence.kernel, None)):
            return None
        if _BAD_BUILD.search(text) or evidence.headers is not False or evidence.container:
            return None
        if any(
            build.state in ("built", "installed") and build.kernel == evidence.kernel
            for build in evidence.dkms
        ):
            return None
        if not (evidence.dkms or NO_MODULE.search(evidence.modprobe)):
            return None
    elif ran and not _named_kernel(match):
        return None
    kernel = _named_kernel(match) or evidence.kernel or "the running kernel"
    system = {"id": evidence.os_id, "family": evidence.family, "arch": evidence.arch}
    headers = kernel_headers(system, kernel)
    package = str(headers)
    line = find_line(text, _NO_HEADERS) or find_line(text, NO_MODULE)
    if evidence.headers_packages and kernel == evidence.kernel:
        names = " ".join(evidence.headers_packages)
        return Finding(
            NO_HEADERS,
            f"The headers of kernel {kernel} are not there, so the module cannot be built for it: "
            f"dpkg has {names} installed, but the files are gone.",
            line or f"/lib/modules/{kernel}/build leads to nothing",
            f"Bring the files back (apt-get install --reinstall {names}), then run again.",
            {"kernel": kernel, "package": package},
        )
    return Finding(
        NO_HEADERS,
        f"The headers of kernel {kernel} are not installed, so the module cannot be built for it.",
        line or f"/lib/modules/{kernel}/build is not there",
        f"Install {package}{_where(headers.foreign)}, then run again. Where the repository no "
        "longer has it, boot the newest installed kernel, whose headers it has.",
        {"kernel": kernel, "package": package},
    )


def _where(foreign: str) -> str:
    """Return where the headers are, of a kernel that is not one of the distribution."""
    return f" (the kernel is from {foreign}, and so are its headers)" if foreign else ""


def _disk_full(evidence: Evidence) -> Finding | None:
    line = find_line(f"{evidence.output}\n{evidence.modprobe}", _NO_SPACE)
    if not line:
        return None
    return Finding(
        DISK_FULL,
        "A file system of the node is full; the change stopped half way.",
        line,
        "Free space (df -h / /var /boot /tmp), then run again: incomplete changes are repaired "
        "first.",
    )


def _build(evidence: Evidence) -> Finding | None:
    failed = _failed_builds(evidence)
    reported = _BAD_BUILD.search(evidence.output)
    runfile = find_line(evidence.output, _RUNFILE_BUILD)
    if reported is None and not runfile and not _is_relevant(evidence, failed):
        return None
    if not failed and reported is None and not runfile:
        return None
    path = _log_path(evidence.output)
    version = path.split("/")[5] if path else evidence.wanted or evidence.installed or ""
    build = DkmsBuild(version, reported[1] if reported else evidence.kernel, "failed")
    if failed:
        build = failed[0]
    log = build.log or evidence.installer_log or evidence.output
    kernel = build.kernel or log_kernel(log) or (reported[1] if reported else None) or "unknown"
    error = first_error(log) or runfile or find_line(evidence.output, _BAD_BUILD)
    kernel_module = evidence.kernel_module or ("open" if "open" in build.name else None)
    fix = known_fix(log, build.version, kernel, kernel_module)
    path = build.log_path or path or (LOG if runfile else "")
    built_by = find_line(log, r"The kernel was built by:")
    using = find_line(log, r"You are using:")
    compilers = f" ({built_by} {using})" if built_by and fix and "compiler" in fix.why else ""
    return build_failed(
        "The installer" if runfile and not failed else "DKMS",
        build.version,
        kernel,
        (f"first error: {error}" if error else "the log has no error of the compiler")
        + compilers
        + (f"; log: {path}" if path else ""),
        fix=(fix.why, fix.step) if fix else ("", ""),
        details={"kernel": kernel, "version": build.version, "error": error, "log": path},
    )


def _is_relevant(evidence: Evidence, failed: Sequence[DkmsBuild]) -> bool:
    """Return whether a failed build explains that the module is missing or not loaded."""
    if not failed:
        return False
    build = failed[0]
    version = evidence.wanted or evidence.installed
    if version and build.version != version and evidence.loaded:
        return False
    return bool(evidence.output) or build.kernel in (evidence.kernel, None)


def _log_path(output: str) -> str:
    match = re.search(r"(/var/lib/dkms/[^/\s]{1,200}/[^/\s]{1,200}/\S{0,200}?make\.log)", output)
    return match[1] if match else ""


BUILD_RULES = (_disk_full, _no_headers, _build)
