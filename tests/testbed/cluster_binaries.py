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
_RECIPE = 1
# Ten minutes on two quiet cores.
_BUILD_PATIENCE = 5400
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
        return program


def ready() -> bool:
    """Whether they are built."""
    return (_home() / f"{VERSION}-{_key()}").is_dir()


def _home() -> Path:
    return cache() / "kubernetes"


def _key() -> str:
    recipe = f"{_RECIPE} {SUITE} {_TOOLS} {PROGRAMS} {CNI}"
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def _build(made: Path) -> None:
    need(["mmdebstrap", "dpkg-source", "rsync", "jq", "make"])
    tools, source = _tools(), _source()
    started = time.monotonic()
    say(f"kubernetes: building {VERSION} (10 minutes on two quiet cores)")
    log = _home() / "build.log"
    words = " ".join(f"cmd/{name}" for name in PROGRAMS)
    # Generators of code are built first; they and the programs share the cache.
    command = f'exec nice make WHAT="{words}" >"$0" 2>&1'
    done = run(
        ["sh", "-c", command, str(log)],
        environment=_go_environment(tools),
        cwd=source,
        check=False,
        timeout=_BUILD_PATIENCE,
    )
    if done.returncode != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise TestbedError(f"Kubernetes could not be built; see {log}\n{tail}")
    half = made.with_name(f".{made.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    (half / "cni").mkdir(parents=True)
    built = source / "_output" / "local" / "bin" / "linux" / "amd64"
    for name in PROGRAMS:
        shutil.copy2(built / name, half / name)
    for name in CNI:
        shutil.copy2(tools / "usr" / "lib" / "cni" / name, half / "cni" / name)
    busybox = next(path for path in (tools / "bin", tools / "usr" / "bin") if path.is_dir())
    shutil.copy2(busybox / "busybox", half / "busybox")
    _wrap(tools, half / "etcd")
    for old in _home().glob(f"{VERSION}-*"):
        shutil.rmtree(old)
    half.rename(made)
    shutil.rmtree(source / "_output")
    say(f"kubernetes: built after {time.monotonic() - started:.0f} s")


def _build_standin(program: Path) -> None:
    tools, source = _tools(), _source()
    say("kubernetes: building the stand-ins that run in containers")
    folder = source / "cmd" / STANDIN
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in STANDINS.glob("*.go"):
        shutil.copy2(path, folder / path.name)
    half = program.with_name(f".{program.name}.half")
    run(
        [
            "nice",
            "go",
            "build",
            "-ldflags",
            "-s -w",
            "-o",
            str(half),
            f"k8s.io/kubernetes/cmd/{STANDIN}",
        ],
        environment=_go_environment(tools),
        cwd=source,
        timeout=1800,
    )
    for old in program.parent.glob(f"{STANDIN}-*"):
        old.unlink()
    half.rename(program)


def _go_environment(tools: Path) -> dict[str, str]:
    go = tools / _GO
    major, minor, _patch = VERSION.split(".")
    return {
        "PATH": f"{go}/bin:{os.environ['PATH']}",
        "GOROOT": str(go),
        "GOPATH": str(_gopath()),
        "GOCACHE": str(_home() / "go-cache"),
        "GO111MODULE": "off",
        "GOFLAGS": "",
        "CGO_ENABLED": "0",
        "KUBE_STATIC_OVERRIDES": "kubelet",
        "KUBE_GIT_VERSION": f"v{VERSION}",
        "KUBE_GIT_MAJOR": major,
        "KUBE_GIT_MINOR": minor,
        "KUBE_GIT_COMMIT": "debian",
        "KUBE_GIT_TREE_STATE": "clean",
        "GOLDFLAGS": "-s -w",
    }


def _tools() -> Path:
    """Debian's Go, etcd and network plugins with the C library that they were linked to."""
    tree = _home() / f"tools-{_key()}"
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
    return _home() / f"source-{_key()}"


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
