# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes itself, built once from Debian's source package and kept in the user's cache.

Go, etcd and the network plugins are Debian's too; they are unpacked beside it, so that nothing is
installed on this machine. All of Kubernetes is linked statically: the kubelet runs in nodes of
every release.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.testbed.mirror import debian_mirror, mmdebstrap_options, suites
from tests.testbed.paths import HERE, cache, locked
from tests.testbed.shell import TestbedError, run, say
from tests.testbed.tools import need

SUITE = "bookworm"
VERSION = "1.20.2"
PROGRAMS = (
    "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"
)  # fmt: skip
STANDINS = HERE / "files" / "cluster-standins"
STANDIN = "kubegpu-standin"
CNI = ("bridge", "host-local", "loopback", "portmap")
_TOOLS = (
    "golang-1.19-go", "golang-1.19-src", "etcd-server", "containernetworking-plugins",
    "busybox-static",
)  # fmt: skip
_GO = "usr/lib/go-1.19"
_RECIPE = 2
# Five minutes of processor time; a machine may have much else to do.
_BUILD_PATIENCE = 5400
_DAY = 86400
_MODULE = "k8s.io/kubernetes"
# Without what the kubelet has for clouds and for Docker: containerd is what it runs pods with.
_TAGS = "providerless,dockerless"
# What the sources leave to a generator: how the API server describes its objects. These are the
# packages of the objects that it serves; Kubernetes' makefile adds those of configurations.
_OPENAPI = f"{_MODULE}/pkg/generated/openapi"
_OPENAPI_GENERATOR = "vendor/k8s.io/kube-openapi/cmd/openapi-gen"
_SERVED = ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator")
_OPENAPI_TAG = "+k8s:openapi-gen=true"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def programs() -> Path:
    """The folder with the programs of Kubernetes, etcd and the network plugins (in ``cni``)."""
    with locked("kubernetes"):
        made = _home() / f"{VERSION}-{_key()}"
        if not made.is_dir():
            _build(made)
        return made


def standins() -> Path:
    """The program that stands in for the device plugin and for the sample in containers."""
    made = programs()
    digest = hashlib.sha256()
    for path in sorted(STANDINS.rglob("*.go")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    with locked("kubernetes"):
        program = made / f"{STANDIN}-{digest.hexdigest()[:12]}"
        if not program.is_file():
            _build_standin(program)
        program.touch()
        return program


def ready() -> bool:
    """Whether they are built."""
    return (_home() / f"{VERSION}-{_key()}").is_dir()


def _home() -> Path:
    return cache() / "kubernetes"


def _key() -> str:
    return _digest(f"{_RECIPE} {SUITE} {_TOOLS} {PROGRAMS} {CNI} {_flags()}")


def _digest(recipe: str) -> str:
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def _build(made: Path) -> None:
    need(["mmdebstrap", "dpkg-source"])
    started = time.monotonic()
    with ThreadPoolExecutor(max_workers=2) as pool:
        unpacking = pool.submit(_tools)
        source = _source()
        tools = unpacking.result()
    say(f"kubernetes: building {VERSION} (three minutes on two idle cores)")
    half = made.with_name(f".{made.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    (half / "cni").mkdir(parents=True)
    _generate(tools, source)
    _go_build(tools, source, f"{half}/", *(f"cmd/{name}" for name in PROGRAMS))
    for name in CNI:
        shutil.copy2(tools / "usr" / "lib" / "cni" / name, half / "cni" / name)
    busybox = next(path for path in (tools / "bin", tools / "usr" / "bin") if path.is_dir())
    shutil.copy2(busybox / "busybox", half / "busybox")
    _wrap(tools, half / "etcd")
    for old in _home().glob(f"{VERSION}-*"):
        shutil.rmtree(old)
    half.rename(made)
    say(f"kubernetes: built after {time.monotonic() - started:.0f} s")


def _generate(tools: Path, source: Path) -> None:
    """Write the code that the sources lack; what an earlier attempt left is replaced."""
    generator = _home() / "openapi-gen"
    _go_build(tools, source, str(generator), _OPENAPI_GENERATOR)
    staging = source / "staging" / "src" / "k8s.io"
    packages = {
        f"{_MODULE}/vendor/k8s.io/{path.parent.relative_to(staging)}"
        for part in _SERVED
        for path in (staging / part).rglob("*.go")
        if _OPENAPI_TAG in path.read_text(encoding="utf-8")
    }
    boilerplate = source / "hack" / "boilerplate" / "boilerplate.generatego.txt"
    run(
        [
            str(generator), "--logtostderr", "--input-dirs", ",".join(sorted(packages)),
            "--output-package", _OPENAPI, "--output-file-base", "zz_generated.openapi",
            "--go-header-file", str(boilerplate), "--report-filename", f"{generator}.report",
        ],
        environment=_go_environment(tools),
        cwd=source,
        timeout=_BUILD_PATIENCE,
    )  # fmt: skip


def _build_standin(program: Path) -> None:
    tools, source = _tools(), _source()
    say("kubernetes: building the stand-ins that run in containers")
    folder = source / "cmd" / STANDIN
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in STANDINS.glob("*.go"):
        shutil.copy2(path, folder / path.name)
    half = program.with_name(f".{program.name}.half")
    _go_build(tools, source, str(half), f"cmd/{STANDIN}")
    for old in program.parent.glob(f"{STANDIN}-*"):
        # Another checkout may use a younger one.
        if time.time() - old.stat().st_mtime > _DAY:
            old.unlink()
    half.rename(program)


def _go_build(tools: Path, source: Path, output: str, *folders: str) -> None:
    """Build programs in one go, for they share most of their packages, and all flags with them."""
    run(
        ["go", "build", *_flags(), "-o", output, *(f"{_MODULE}/{folder}" for folder in folders)],
        environment=_go_environment(tools),
        cwd=source,
        timeout=_BUILD_PATIENCE,
    )


def _flags() -> list[str]:
    """The flags of Kubernetes' own build, with the version that it would find in its repository."""
    major, minor, _patch = VERSION.split(".")
    values = {
        "gitVersion": f"v{VERSION}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "debian",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    words = [
        f"-X {_MODULE}/vendor/k8s.io/{package}.{name}={value}"
        for package in ("client-go/pkg/version", "component-base/version")
        for name, value in values.items()
    ]
    # The linker leaves debug information out (-s -w): the compiler need not make it.
    compiler = "-gcflags=all=-dwarf=false"
    return ["-tags", _TAGS, "-trimpath", compiler, "-ldflags", " ".join(["-s -w", *words])]


def _go_environment(tools: Path) -> dict[str, str]:
    go = tools / _GO
    return {
        "PATH": f"{go}/bin:{os.environ['PATH']}",
        "GOROOT": str(go),
        "GOPATH": str(_gopath()),
        "GOCACHE": str(_home() / "go-cache"),
        "GO111MODULE": "off",
        "GOFLAGS": "",
        "CGO_ENABLED": "0",
        # The compiler collects its garbage seldom: a sixth less work for 600 MB of memory.
        "GOGC": "800",
    }


def _tools() -> Path:
    """Debian's Go, etcd and network plugins with the C library that they were linked to."""
    tree = _home() / f"tools-{_digest(f'{SUITE} {_TOOLS}')}"
    if tree.is_dir():
        return tree
    say("kubernetes: unpacking Debian's Go, etcd and network plugins")
    _home().mkdir(parents=True, exist_ok=True)
    half = _home() / ".tools.half"
    run(["rm", "-rf", str(half)], root=True)
    mirror = debian_mirror()
    run(
        [
            "mmdebstrap",
            "--variant=extract",
            f"--include={','.join(_TOOLS)}",
            *mmdebstrap_options(),
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            SUITE,
            str(half),
            *([mirror] if mirror else []),
        ],
        root=True,
    )
    run(["chmod", "755", str(half)], root=True)
    run(["rm", "-rf", *(str(half / name) for name in ("var", "dev", "tmp"))], root=True)
    run(["chown", "-R", "-h", f"{os.getuid()}:{os.getgid()}", str(half)], root=True)
    for old in _home().glob("tools-*"):
        shutil.rmtree(old)
    half.rename(tree)
    return tree


def _gopath() -> Path:
    return _home() / f"source-{_digest(f'{SUITE} {VERSION}')}"


def _source() -> Path:
    """Debian's source package, unpacked where Go looks for it."""
    tree = _gopath() / "src" / "k8s.io" / "kubernetes"
    if tree.is_dir():
        return tree
    say("kubernetes: downloading Debian's source package")
    half = _home() / ".source.half"
    shutil.rmtree(half, ignore_errors=True)
    download = half / "download"
    download.mkdir(parents=True)
    apt = _private_apt(half / "apt")
    run([*apt, "update", "-q"], cwd=download)
    run([*apt, "source", "--download-only", "-q", "kubernetes"], cwd=download)
    description = next(iter(download.glob("*.dsc")), None)
    if description is None or VERSION not in description.name:
        raise TestbedError(f"Debian {SUITE} has no source package of Kubernetes {VERSION}")
    # apt has checked the signature.
    target = half / "gopath" / "src" / "k8s.io" / "kubernetes"
    target.parent.mkdir(parents=True)
    run(["dpkg-source", "--no-check", "-x", str(description), str(target)])
    for old in _home().glob("source-*"):
        shutil.rmtree(old)
    (half / "gopath").rename(_gopath())
    shutil.rmtree(half)
    return tree


def _private_apt(home: Path) -> list[str]:
    """apt-get with its own folders: this machine's lists stay as they are."""
    for name in ("lists/partial", "etc", "cache/archives/partial"):
        (home / name).mkdir(parents=True)
    (home / "status").touch()
    (home / "etc" / "sources.list").write_text(
        "".join(
            f"deb-src [signed-by={_KEYRING}] {address} {suite} main\n"
            for address, suite in suites(SUITE)
        )
    )
    settings = {
        "Dir::Etc": f"{home}/etc",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": str(home),
        "Dir::State::lists": f"{home}/lists",
        "Dir::State::status": f"{home}/status",
        "Dir::Cache": f"{home}/cache",
        "APT::Sandbox::User": "",
        "Acquire::Check-Valid-Until": "false",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
    }
    clear = home / "clear.conf"
    clear.write_text("#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n")
    return ["apt-get", f"-c={clear}", *(f"-o={name}={value}" for name, value in settings.items())]


def _wrap(tools: Path, script: Path) -> None:
    """A script that starts etcd with the C library of its own release."""
    loader = next(iter(sorted(tools.glob("**/ld-linux*.so.*"))), None)
    libraries = [
        str(folder)
        for where in ("lib", "usr/lib")
        for folder in (tools / where).glob("*-linux-gnu")
    ]
    if loader is None:
        raise TestbedError(f"no loader in {tools}")
    words = f'"{loader}" --library-path "{":".join(libraries)}" "{tools}/usr/bin/etcd"'
    script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    script.chmod(0o755)
