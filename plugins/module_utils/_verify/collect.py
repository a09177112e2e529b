# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask a GPU node what its facts do not tell, and start a container through each runtime.

Everything is bounded in time, and what was made is removed whatever happens. Containers of
containerd run in a namespace of our own, which neither CRI nor the kubelet looks at; only an image
that Kubernetes has already is used where it lies.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._containerd.distributions import PLAIN, ctr_command, find_distribution
from .._core.errors import KubegpuError
from .._core.finding import Finding
from .._diagnosis.driver import UNKNOWN, diagnose
from .._diagnosis.evidence import collect
from .._diagnosis.known_errors import explain_one
from .._facts.gather import read_nvml
from .._host.command import TIMED_OUT, Result, Runner
from .._runtime.cri import CRIO_SOCKET, read_status
from .fabric import Fabric, look
from .judge import NODE_LAYERS, RUNTIME, Engine, Seen, Trial

if TYPE_CHECKING:
    from .._host.reader import NodeReader
    from .rootfs import Scratch

NAME = "kubegpu-verify"
_LABEL = "kubegpu.nodes=verify"
_KUBERNETES = "k8s.io"
_TOOLKIT_CONFIG = "/etc/nvidia-container-runtime/config.toml"
_RUNC_SHIM = "io.containerd.runc.v2"
_SMI = ("nvidia-smi", "-L")
# Where the facts have what each engine knows.
_KNOWN = (("containerd", "handlers"), ("docker", "runtimes"), ("crio", "runtimes"))
# Where the loader looks in a root file system that has no cache of its own.
_LIBRARIES = "/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib"
_LOADER_FILES = ("/etc/debian_version", "/etc/ld.so.conf")
_LDD = re.compile(r"(?:=>\s*)?(/\S+) \(0x[0-9a-f]+\)")
_QUICK = 20
# As timeout tells that it had to use SIGKILL.
_KILLED = (137, -9)


@dataclass(frozen=True)
class Options:
    """What the user asked for; see the module's documentation."""

    layers: tuple[str, ...] = NODE_LAYERS
    container: bool = True
    engines: tuple[str, ...] = ("containerd", "docker", "crio")
    handler: str = "nvidia"
    runtime_path: str = "/usr/bin/nvidia-container-runtime"
    image: str = ""
    archive: str = ""
    pull: bool = False
    command: tuple[str, ...] = ()
    expect: str = ""
    devices: tuple[str, ...] = ("all",)
    timeout: int = 60
    image_timeout: int = 600
    fabric: str = "auto"
    fabric_timeout: int = 120
    containerd_socket: str = PLAIN.socket


@dataclass(frozen=True)
class World:
    """What touches the node. ``restarted_since(unit, path)`` tells whether a daemon started after
    its file was written; None where nobody can tell."""

    run: Runner
    reader: NodeReader
    scratch: Scratch
    token: str
    image_names: Callable[[str], list[str]]
    interpreter: Callable[[str], str | None]
    restarted_since: Callable[[str, str], bool | None]


@dataclass(frozen=True)
class _Ready:
    """What a container is made of; ``where`` is containerd's namespace."""

    subject: str
    arguments: tuple[str, ...] = ()
    where: str = NAME
    fault: Finding | None = None


class Verifier:
    """Collects what :func:`._verify.verify` judges. Ask once."""

    def __init__(self, world: World, options: Options, check: bool) -> None:
        self.world = world
        self.options = options
        self.check = check
        self._count = 0
        self._flavour, _sign = find_distribution(world.reader.exists)
        # Whose containerd it is says where it listens, unless somebody says so.
        given = options.containerd_socket
        self._socket = self._flavour.socket if given == PLAIN.socket else given

    def seen(self, node: Mapping[str, Any]) -> Seen:
        """Return what was asked and tried."""
        run, reader, layers = self.world.run, self.world.reader, self.options.layers
        loaded = node["driver"]["loaded"]
        diagnosis = None
        if not loaded and node["driver"]["installed"] and "module" in layers:
            finding = diagnose(collect(reader, node))
            diagnosis = None if finding.code == UNKNOWN else finding
        spec = node["container_toolkit"]["cdi_spec"]
        path = self._program(node)
        return Seen(
            smi=run(["nvidia-smi", "-L"], timeout=60) if loaded and not node["nvml"] else None,
            diagnosis=diagnosis,
            runtime=run([path, "--version"], timeout=_QUICK),
            runtime_path=path,
            cdi=run(["nvidia-ctk", "cdi", "list"], timeout=_QUICK) if spec else None,
            cli=run(["nvidia-container-cli", "info"], timeout=60) if node["nvml"] else None,
            config_there=reader.exists(_TOOLKIT_CONFIG),
            fabric=self._fabric(node) if "nvml" in layers else None,
            engines=tuple(self._engines(node)) if RUNTIME in layers else (),
        )

    def _fabric(self, node: Mapping[str, Any]) -> Fabric | None:
        def devices() -> Sequence[Mapping[str, Any]]:
            nvml, _complaint = read_nvml(self.world.reader, node["gpus"])
            return nvml["devices"] if nvml else ()

        return look(
            node,
            self.world.run,
            devices,
            self.options.fabric_timeout,
            time.monotonic,
            time.sleep,
            self.options.fabric,
        )

    def starts_containers(self) -> bool:
        return not self.check and self.options.container and RUNTIME in self.options.layers

    def clean(self) -> None:
        """Remove all that this run or one that was killed has made."""
        self._clean_containerd()
        self._clean_docker()
        self.world.scratch.remove()

    def _program(self, node: Mapping[str, Any]) -> str:
        """Return the nvidia runtime that is in use: the handler's own where it names one."""
        for engine, field in _KNOWN:
            known = (node["runtimes"][engine] or {}).get(field) or {}
            path = (known.get(self.options.handler) or {}).get("path")
            if path and path.startswith("/") and _is_nvidia(path, self.options.runtime_path):
                return str(path)
        return self.options.runtime_path

    # -- which runtimes ------------------------------------------------------------------------

    def _engines(self, node: Mapping[str, Any]) -> Iterator[Engine]:
        runtimes = node["runtimes"]
        containerd, docker = runtimes["containerd"], runtimes["docker"]
        if containerd:
            yield self._left_out("containerd") or self._containerd(node, containerd, docker)
        if docker:
            pods = bool(containerd and containerd["cri_enabled"] is not False)
            yield self._left_out("docker") or self._docker(node, docker, pods)
        if runtimes["crio"]:
            yield self._left_out("crio") or self._crio(runtimes["crio"])

    def _left_out(self, name: str) -> Engine | None:
        if name in self.options.engines:
            return None
        return Engine(name, self.options.handler, idle=f"{name} is left out, as was asked for.")

    def _containerd(
        self, node: Mapping[str, Any], facts: Mapping[str, Any], docker: Mapping[str, Any] | None
    ) -> Engine:
        handler = self.options.handler
        if facts["cri_enabled"] is False and docker:
            idle = "containerd's CRI plugin is off: it serves Docker alone."
            return Engine("containerd", handler, idle=idle)
        fault = self._not_running("containerd", facts)
        if fault:
            return Engine("containerd", handler, fault=fault)
        flavour = self._flavour
        ctr = ctr_command(flavour, self.world.reader.exists)
        answer = read_status(self.world.run, self._socket, flavour.crictl, ctr)
        if not answer.ready:
            otherwise = Finding(
                "cri_not_ready",
                "containerd runs, but its CRI does not answer: Kubernetes cannot use it.",
                answer.message,
                f"Look at: {' '.join(ctr)} plugins ls; journalctl --unit {facts['unit']}.",
            )
            return Engine("containerd", handler, fault=explain_one(answer.message, otherwise))
        known: Mapping[str, Any] = facts["handlers"] or {}
        handlers, how = tuple(sorted(known)), "containerd config dump"
        if answer.handlers is not None:
            handlers, how = tuple(sorted(answer.handlers)), "crictl info"
        elif (
            # What a distribution writes when it starts is newer than that start.
            flavour.generated is None
            and self.world.restarted_since(facts["unit"], facts["config_path"]) is False
        ):
            return Engine(
                "containerd",
                handler,
                fault=Finding(
                    "restart_required",
                    f"{facts['config_path']} was changed after the running containerd started: "
                    "what it says of handlers is not in force.",
                    f"{handler} is {'in' if handler in known else 'not in'} the file",
                    f"systemctl restart {facts['unit']} (running containers go on), or run "
                    "kubegpu.nodes.site, which does it.",
                ),
            )
        listed = handler in handlers
        wrong = self._wrong_program("containerd", known.get(handler)) if listed else None
        engine = Engine(
            "containerd",
            handler,
            listed,
            handlers,
            facts["default_handler"],
            how,
            fault=wrong,
        )
        if not listed or wrong or not self.options.container:
            return engine
        trials = tuple(self._by_ctr(node, known.get(handler) or {}))
        return Engine("containerd", handler, listed, handlers, engine.default, how, trials=trials)

    def _docker(self, node: Mapping[str, Any], facts: Mapping[str, Any], other: bool) -> Engine:
        handler = self.options.handler
        if facts["active"] is False and other:
            return Engine("docker", handler, idle="Docker is installed and does not run.")
        fault = self._not_running("docker", facts)
        if fault:
            return Engine("docker", handler, fault=fault)
        known: Mapping[str, Any] = facts["runtimes"] or {}
        listed = handler in known
        wrong = self._wrong_program("docker", known.get(handler)) if listed else None
        trials: tuple[Trial, ...] = ()
        if listed and not wrong and self.options.container:
            trials = tuple(self._by_docker(node, facts))
        return Engine(
            "docker",
            handler,
            listed,
            tuple(sorted(known)),
            facts["default_runtime"],
            "docker info",
            fault=wrong,
            trials=trials,
        )

    def _crio(self, facts: Mapping[str, Any]) -> Engine:
        """Look the handler up. CRI-O starts no container without a pod: the layer pod does that."""
        handler, known = self.options.handler, facts["runtimes"] or {}
        fault = self._not_running("crio", facts)
        if fault:
            return Engine("crio", handler, fault=fault)
        answer = read_status(self.world.run, CRIO_SOCKET, ctr=None)
        handlers, how = tuple(sorted(known)), "the files in /etc/crio"
        if answer.handlers is not None:
            handlers, how = tuple(sorted(answer.handlers)), "crictl info"
        if not answer.ready:
            otherwise = Finding(
                "cri_not_ready",
                "CRI-O runs, but does not answer: Kubernetes cannot use it.",
                answer.message,
                "Look at: journalctl --unit crio.",
            )
            fault = explain_one(answer.message, otherwise)
        elif answer.handlers is None and facts["restart_required"]:
            fault = Finding(
                "restart_required",
                f"The files of CRI-O were changed after the running one started: what they say of "
                f"{handler} is not in force.",
                f"{handler} is {'in' if handler in known else 'not in'} the files",
                f"systemctl restart {facts['unit']} (running containers go on), or run "
                "kubegpu.nodes.site, which does it.",
            )
        elif handler in handlers:
            fault = self._wrong_program("crio", {"type": _RUNC_SHIM, **known.get(handler, {})})
        return Engine(
            "crio",
            handler,
            handler in handlers,
            handlers,
            facts["default_runtime"],
            how,
            fault=fault,
        )

    def _not_running(self, name: str, facts: Mapping[str, Any]) -> Finding | None:
        if facts["active"] is not False:
            return None
        unit = facts["unit"]
        words = self.world.run(
            ["journalctl", "--unit", unit, "--no-pager", "--output=cat", "--lines=5"],
            timeout=_QUICK,
        ).stdout.strip()
        return Finding(
            f"{name}_not_running",
            f"{name} does not run.",
            words or f"systemctl is-active {unit} says no",
            f"systemctl start {unit}; if it does not come back: journalctl --unit {unit}.",
        )

    def _wrong_program(self, name: str, handler: Mapping[str, Any] | None) -> Finding | None:
        """Return that a handler runs something else: its name alone gives no GPU."""
        path = (handler or {}).get("path")
        kind = (handler or {}).get("type") or _RUNC_SHIM
        if path and _is_nvidia(path, self.options.runtime_path):
            return None
        if kind != _RUNC_SHIM and not path:
            # A shim of its own, which does not need another program.
            return None
        return Finding(
            "wrong_program",
            f"{name}'s handler {self.options.handler} runs {path or 'runc'}, not NVIDIA's runtime.",
            f"its program is {path or 'not set, which is runc'}; two spellings of BinaryName in "
            "one file do that too",
            f"Set it to {self.options.runtime_path}; role nvidia_container_toolkit does it.",
        )

    # -- containers by ctr ---------------------------------------------------------------------

    def _by_ctr(self, node: Mapping[str, Any], handler: Mapping[str, Any]) -> Iterator[Trial]:
        program = handler.get("path") or self.options.runtime_path
        way = f"ctr run --runc-binary {program}"
        command, counts = self._command(node)
        ready = self._containerd_image(node, command)
        for devices in self.options.devices:
            if ready.fault:
                yield self._skipped(way, ready.subject, command, devices, ready.fault)
                continue
            if self.check:
                yield self._predicted(way, ready.subject, command, devices)
                continue
            name = self._name()
            shim = handler.get("type") or _RUNC_SHIM
            argv = ["run", "--rm", "--runc-binary", program]
            argv += [] if shim == _RUNC_SHIM else ["--runtime", shim]
            for variable in self._environment(devices):
                argv += ["--env", variable]
            argv += [*ready.arguments, name, *command]
            result = self._bounded([*self._ctr_start(ready.where), *argv])
            self._remove_container(ready.where, name)
            yield self._done(way, ready.subject, command, devices, counts, result)

    def _containerd_image(self, node: Mapping[str, Any], command: Sequence[str]) -> _Ready:
        options = self.options
        if options.archive:
            subject = f"the image of {options.archive}"
            if self.check:
                return _Ready(subject)
            names = self.world.image_names(options.archive)
            answer = self._ctr(
                NAME, "images", "import", options.archive, timeout=options.image_timeout
            )
            there = self._lines(NAME, "images", "ls", "-q") or names
            chosen = next((name for name in _spellings(options.image) if name in there), None)
            if answer.ok and (chosen or (there and not options.image)):
                chosen = chosen or there[0]
                return _Ready(f"the image {chosen} of {options.archive}", (chosen,))
            return _Ready(subject, fault=_no_image(options, answer, there))
        if options.image:
            known = self._lines(_KUBERNETES, "images", "ls", "-q")
            chosen = next((name for name in _spellings(options.image) if name in known), None)
            if chosen:
                return _Ready(f"the image {chosen}", (chosen,), _KUBERNETES)
            subject = f"the image {options.image}"
            if not options.pull:
                return _Ready(subject, fault=_no_image(options, None, ()))
            if self.check:
                return _Ready(subject)
            name = _spellings(options.image)[-1]
            answer = self._ctr(NAME, "images", "pull", name, timeout=options.image_timeout)
            if not answer.ok:
                return _Ready(subject, fault=_no_image(options, answer, ()))
            return _Ready(subject, (name,))
        return self._own_root(command, lambda root: ("--rootfs", root))

    def _ctr(self, namespace: str, *argv: str, timeout: int = _QUICK) -> Result:
        return self.world.run([*self._ctr_start(namespace), *argv], timeout=timeout)

    def _ctr_start(self, namespace: str) -> list[str]:
        ctr = ctr_command(self._flavour, self.world.reader.exists)
        return [*ctr, "--address", self._socket, "--namespace", namespace]

    def _lines(self, namespace: str, *argv: str) -> list[str]:
        answer = self._ctr(namespace, *argv)
        return answer.stdout.split() if answer.ok else []

    def _remove_container(self, namespace: str, name: str) -> None:
        """Remove a container that did not end or remove itself."""
        if name not in self._lines(namespace, "containers", "ls", "-q"):
            return
        self._ctr(namespace, "tasks", "kill", "--signal", "SIGKILL", name)
        self._ctr(namespace, "tasks", "rm", "--force", name)
        self._ctr(namespace, "containers", "rm", name)
        self._ctr(namespace, "snapshots", "rm", name)

    def _clean_containerd(self) -> None:
        # A daemon that does not run is not waited for, and one without us has nothing of ours.
        namespaces = self._lines(_KUBERNETES, "namespaces", "ls", "-q")
        if _KUBERNETES in namespaces:
            for name in self._lines(_KUBERNETES, "containers", "ls", "-q"):
                if name.startswith(f"{NAME}-"):
                    self._remove_container(_KUBERNETES, name)
        if NAME not in namespaces:
            return
        for name in self._lines(NAME, "containers", "ls", "-q"):
            self._remove_container(NAME, name)
        for name in self._lines(NAME, "images", "ls", "-q"):
            self._ctr(NAME, "images", "rm", "--sync", name, timeout=60)
        for name in self._lines(NAME, "leases", "ls", "-q"):
            self._ctr(NAME, "leases", "rm", "--sync", name, timeout=60)
        self._ctr(NAME, "namespaces", "rm", NAME)

    # -- containers by docker ------------------------------------------------------------------

    def _by_docker(self, node: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Trial]:
        handler, options = self.options.handler, self.options
        command, counts = self._command(node)
        version = tuple(int(part) for part in re.findall(r"\d+", facts["version"] or "")[:2])
        by_hook = not version or version >= (19, 3)
        ready = self._docker_image(command)
        for devices in options.devices:
            ways = [(f"docker run --runtime {handler}", ["--runtime", handler])]
            if by_hook:
                ways.append((f"docker run --gpus {devices}", ["--gpus", _gpus(devices)]))
            for way, flags in ways:
                if ready.fault:
                    yield self._skipped(way, ready.subject, command, devices, ready.fault)
                    continue
                if self.check:
                    yield self._predicted(way, ready.subject, command, devices)
                    continue
                name = self._name()
                argv = ["run", "--rm", "--name", name, "--label", _LABEL, "--network", "none"]
                argv += flags
                for variable in self._environment(devices, flags[0] == "--runtime"):
                    argv += ["--env", variable]
                argv += [*ready.arguments, *command]
                result = self._bounded(["docker", *argv])
                if not result.ok:
                    self._docker_cli("rm", "--force", "--volumes", name)
                yield self._done(way, ready.subject, command, devices, counts, result)

    def _docker_image(self, command: Sequence[str]) -> _Ready:
        options = self.options
        if self._docker_cli("--version").rc == 127:
            missing = Finding(
                "not_asked",
                "The program docker is not on this node, so that no container was started by "
                "dockerd.",
                "",
                "Install docker-cli, or leave Docker out: engines: [containerd].",
            )
            return _Ready("", fault=missing)
        if options.archive:
            return self._docker_archive()
        if options.image:
            subject = f"the image {options.image}"
            if self._docker_has(options.image):
                return _Ready(subject, (options.image,))
            if not options.pull:
                return _Ready(subject, fault=_no_image(options, None, ()))
            if self.check:
                return _Ready(subject)
            self.world.scratch.note(options.image)
            answer = self._docker_cli("pull", options.image, timeout=options.image_timeout)
            if not answer.ok:
                return _Ready(subject, fault=_no_image(options, answer, ()))
            return _Ready(subject, (options.image,))

        def imported(_root: str) -> tuple[str, ...]:
            image = f"{NAME}:{self.world.token}"
            path = self.world.scratch.pack("rootfs.tar")
            answer = self._docker_cli("import", path, image, timeout=self.options.timeout)
            if not answer.ok:
                raise KubegpuError(
                    "Docker did not take the root file system.", evidence=answer.words()
                )
            return (image,)

        return self._own_root(command, imported)

    def _docker_archive(self) -> _Ready:
        options = self.options
        subject = f"the image of {options.archive}"
        if self.check:
            return _Ready(subject)
        names = self.world.image_names(options.archive)
        chosen = options.image or (names[0] if names else "")
        if not chosen:
            answer = Result(1, "", "the archive gives its image no name")
            return _Ready(subject, fault=_no_image(options, answer, names))
        # Loading would take the name from an image that has it already.
        if not self._docker_has(chosen):
            for name in names:
                if not self._docker_has(name):
                    self.world.scratch.note(name)
            answer = self._docker_cli(
                "load", "--quiet", "--input", options.archive, timeout=options.image_timeout
            )
            if not answer.ok or not self._docker_has(chosen):
                return _Ready(subject, fault=_no_image(options, answer, names))
        return _Ready(f"the image {chosen} of {options.archive}", (chosen,))

    def _docker_has(self, image: str) -> bool:
        return self._docker_cli("image", "inspect", "--format", "{{.Id}}", image).ok

    def _docker_cli(self, *argv: str, timeout: int = _QUICK) -> Result:
        return self.world.run(["docker", *argv], timeout=timeout)

    def _clean_docker(self) -> None:
        scratch = self.world.scratch
        # dockerd's socket may start it, and one that was never used has nothing of ours.
        if not scratch.there() or not self.world.reader.exists("/run/docker.pid"):
            return
        ours = ("--quiet", "--filter", f"label={_LABEL}")
        for name in self._docker_cli("ps", "--all", *ours).stdout.split():
            self._docker_cli("rm", "--force", "--volumes", name)
        for name in dict.fromkeys(self._docker_cli("images", "--quiet", NAME).stdout.split()):
            self._docker_cli("rmi", "--force", name, timeout=60)
        for name in filter(None, scratch.notes()):
            # Without force: somebody may use it by now.
            self._docker_cli("rmi", name, timeout=60)

    # -- what both share -----------------------------------------------------------------------

    def _command(self, node: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
        """Return the command, and whether its lines are counted as GPUs."""
        options = self.options
        if options.command:
            return options.command, False
        if not self._bare:
            # An image that is to say something says it by its own command.
            return ((), False) if options.expect else (_SMI, True)
        if node["nvml"] and self.world.reader.exists("/usr/bin/nvidia-smi"):
            return _SMI, True
        return ("/bin/true",), False

    def _own_root(
        self, command: Sequence[str], arguments: Callable[[str], tuple[str, ...]]
    ) -> _Ready:
        """Make a root file system of what the command needs, and of nothing of the driver."""
        subject = "a bare root file system (no image was given)"
        if self.check:
            return _Ready(subject)
        scratch, reader = self.world.scratch, self.world.reader
        scratch.make()
        program = command[0] if command[0].startswith("/") else f"/usr/bin/{command[0]}"
        programs = ["/bin/true", program]
        script = self.world.interpreter(program)
        if script:
            programs.append(script)
        needed: list[str] = []
        for one in programs:
            answer = self.world.run(["ldd", one], timeout=_QUICK)
            needed += [path for path in _LDD.findall(answer.stdout) if "nvidia" not in path]
        # The runtime itself has to bring what is NVIDIA's: else nothing would be proven.
        own = [one for one in programs if "nvidia" not in one]
        loader = [f"/etc/ld.so.conf.d/{name}" for name in reader.list_dir("/etc/ld.so.conf.d")]
        scratch.copy([*own, *dict.fromkeys(needed), *_LOADER_FILES, *loader])
        return _Ready(subject, arguments(scratch.root))

    def _environment(self, devices: str, visible: bool = True) -> list[str]:
        found = [f"NVIDIA_VISIBLE_DEVICES={devices}"] if visible else []
        if self._bare:
            found += [
                "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                f"LD_LIBRARY_PATH={_LIBRARIES}",
            ]
        return found

    def _bounded(self, argv: Sequence[str]) -> Result:
        """Run a container; one that has to be killed at its time's end has timed out."""
        begun = time.monotonic()
        result = self.world.run(argv, timeout=self.options.timeout)
        if result.rc in _KILLED and time.monotonic() - begun >= self.options.timeout:
            return Result(TIMED_OUT, result.stdout, result.stderr)
        return result

    @property
    def _bare(self) -> bool:
        return not (self.options.image or self.options.archive)

    def _name(self) -> str:
        self._count += 1
        return f"{NAME}-{self.world.token}-{self._count}"

    def _skipped(
        self, way: str, subject: str, command: tuple[str, ...], devices: str, why: Finding
    ) -> Trial:
        return Trial(way, subject, command, devices, skipped=why)

    def _predicted(self, way: str, subject: str, command: tuple[str, ...], devices: str) -> Trial:
        words = " ".join(command) or "its own command"
        would = Finding(
            "check_mode", f"Check mode: would run {words} in {subject} by {way}, and remove it."
        )
        return Trial(way, subject, command, devices, skipped=would)

    def _done(
        self,
        way: str,
        subject: str,
        command: tuple[str, ...],
        devices: str,
        counts: bool,
        result: Result,
    ) -> Trial:
        return Trial(
            way, subject, command, devices, counts, self._bare, self.options.expect, result
        )


def _is_nvidia(path: str, wished: str) -> bool:
    return path == wished or "nvidia-container-runtime" in path.rpartition("/")[2]


def _gpus(devices: str) -> str:
    """Return the value of --gpus, in which a comma would begin the next option."""
    return devices if devices == "all" else f'"device={devices}"'


def _spellings(image: str) -> tuple[str, ...]:
    """Return an image's name as it was given, and in full as containerd keeps it."""
    if not image:
        return ()
    first, slash, _rest = image.partition("/")
    full = image
    if not slash:
        full = f"docker.io/library/{image}"
    elif "." not in first and ":" not in first and first != "localhost":
        full = f"docker.io/{image}"
    if "@" not in full and ":" not in full.rpartition("/")[2]:
        full += ":latest"
    return tuple(dict.fromkeys((image, full)))


def _no_image(options: Options, answer: Result | None, names: Sequence[str]) -> Finding:
    what = options.image or options.archive
    if answer is None:
        return Finding(
            "image_missing",
            f"The image {what} is not on this node, and was not pulled.",
            "pull is false",
            "Bring it there (archive: a file on the node), set pull: true, or leave image out: "
            "then a bare root file system is used.",
        )
    otherwise = Finding(
        "image_missing",
        f"The image {what} could not be brought onto this node.",
        answer.words() or f"the archive has {', '.join(names) or 'no name'}",
        "Check the name, the path and the registry.",
    )
    return explain_one(answer.words(), otherwise)


@contextlib.contextmanager
def cleaned(
    verifier: Verifier,
    lock: Callable[[], contextlib.AbstractContextManager[None]],
    deaf: Callable[[], None],
) -> Iterator[None]:
    """Remove what a killed run left, and whatever happens what this one makes.

    :param lock: keeps other runs out: what has our name is then left over.
    :param deaf: called before the last cleaning: from then on signals wait.
    """
    if not verifier.starts_containers():
        yield
        return
    scratch = verifier.world.scratch
    with lock():
        try:
            if scratch.there():
                verifier.clean()
            # The folder is the mark of a run that has not cleaned up yet.
            scratch.note("")
            yield
        finally:
            deaf()
            verifier.clean()
