# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probe containerd: its CRI service, the handler, and test containers started by ``ctr``.

Containers run in a namespace of their own, which neither CRI nor the kubelet reads. Only an image
that Kubernetes has already is used from the namespace ``k8s.io``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._containerd.distributions import PLAIN, ctr_command, find_distribution
from .._core.finding import Finding
from .._host.command import Result
from .._known_faults.explain import explain_one
from .._runtime.cri import read_status
from .containers import ALL_GPUS, NAME, QUICK, RUNC_SHIM, SMI, ContainerTests, Image
from .types import ContainerRun, RuntimeState

_KUBERNETES = "k8s.io"


class ContainerdProbe:
    """Probes the containerd of a node."""

    def __init__(self, tests: ContainerTests) -> None:
        self._tests = tests
        self._dependencies = tests.dependencies
        self._options = tests.options
        self._check = tests.check
        self._distribution, _sign = find_distribution(tests.dependencies.reader.exists)
        # The distribution determines the socket, unless the option names another one.
        given = tests.options.containerd_socket
        self._socket = self._distribution.socket if given == PLAIN.socket else given

    def probe(
        self, node: Mapping[str, Any], facts: Mapping[str, Any], docker: Mapping[str, Any] | None
    ) -> RuntimeState:
        """Return the state of containerd.

        :param facts: the fact ``runtimes.containerd``.
        :param docker: the fact ``runtimes.docker``.
        """
        handler = self._options.handler
        if facts["cri_enabled"] is False and docker:
            idle = "containerd's CRI plugin is off: it serves Docker alone."
            return RuntimeState("containerd", handler, idle=idle)
        fault = self._tests.not_running("containerd", facts)
        if fault:
            return RuntimeState("containerd", handler, fault=fault)
        ctr = ctr_command(self._distribution, self._dependencies.reader.exists)
        answer = read_status(self._dependencies.run, self._socket, self._distribution.crictl, ctr)
        if not answer.ready:
            otherwise = Finding(
                "cri_not_ready",
                "containerd runs, but its CRI does not answer: Kubernetes cannot use it.",
                answer.message,
                f"Check: {' '.join(ctr)} plugins ls; journalctl --unit {facts['unit']}.",
            )
            return RuntimeState("containerd", handler, fault=explain_one(answer.message, otherwise))
        known: Mapping[str, Any] = facts["handlers"] or {}
        handlers, source = tuple(sorted(known)), "containerd config dump"
        if answer.handlers is not None:
            handlers, source = tuple(sorted(answer.handlers)), "crictl info"
        if answer.handlers is None or (handler in known and handler not in handlers):
            fault = self._outdated(facts, handler in known)
            if fault:
                return RuntimeState("containerd", handler, fault=fault)
        listed = handler in handlers
        if listed:
            fault = self._tests.wrong_program("containerd", known.get(handler))
        containers: tuple[ContainerRun, ...] = ()
        if listed and not fault and self._options.container:
            containers = tuple(self._run_containers(node, known.get(handler) or {}))
        return RuntimeState(
            "containerd",
            handler,
            listed,
            handlers,
            facts["default_handler"],
            source,
            fault=fault,
            containers=containers,
        )

    def clean(self) -> None:
        """Remove all that verification runs have created in containerd."""
        # Without our namespace there is nothing of ours; a stopped daemon is not waited for.
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

    def _outdated(self, facts: Mapping[str, Any], in_file: bool) -> Finding | None:
        """Return that the configuration file is newer than the running daemon."""
        if (
            # A distribution that generates the file does so at startup, after the daemon started.
            self._distribution.generated is not None
            or self._dependencies.restarted_since(facts["unit"], facts["config_path"]) is not False
        ):
            return None
        return Finding(
            "restart_required",
            f"{facts['config_path']} was changed after the running containerd started: "
            "the handlers in the file are not in effect.",
            f"{self._options.handler} is {'in' if in_file else 'not in'} the file",
            f"systemctl restart {facts['unit']} (running containers continue), or run "
            "kubegpu.nodes.site, which does it.",
        )

    def _run_containers(
        self, node: Mapping[str, Any], handler: Mapping[str, Any]
    ) -> Iterator[ContainerRun]:
        tests = self._tests
        program = handler.get("path") or self._options.runtime_path
        method = f"ctr run --runc-binary {program}"
        command, counts_gpus = tests.command(node)
        image = self._image(command)
        for devices in self._options.devices:
            skipped = tests.not_started(method, image, command, devices)
            if skipped:
                yield skipped
                continue
            name = tests.new_name()
            shim = handler.get("type") or RUNC_SHIM
            argv = ["run", "--rm", "--runc-binary", program]
            argv += [] if shim == RUNC_SHIM else ["--runtime", shim]
            for variable in tests.environment(devices):
                argv += ["--env", variable]
            argv += [*image.arguments, name, *command]
            result = tests.run([*self._ctr_start(image.namespace), *argv])
            self._remove_container(image.namespace, name)
            finished = tests.finished(method, image, command, devices, counts_gpus, result)
            yield replace(finished, manual=self._manual(program, shim))

    def _manual(self, program: str, shim: str) -> str:
        """Return the commands that start a container with the GPUs in an image of Ubuntu."""
        ctr, name = self._ctr_start("default"), "docker.io/library/ubuntu:24.04"
        runtime = [] if shim == RUNC_SHIM else ["--runtime", shim]
        variables = ["--env", ALL_GPUS, "--env", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"]
        argv = ["run", "--rm", "--runc-binary", program, *runtime, *variables, name, "gpu-test"]
        pull = shlex.join([*ctr, "image", "pull", name])
        return f"{pull} && {shlex.join([*ctr, *argv, *SMI])}"

    def _image(self, command: Sequence[str]) -> Image:
        if self._options.archive:
            return self._archive()
        if self._options.image:
            return self._named_image()
        return self._tests.own_root(command, lambda root: ("--rootfs", root))

    def _archive(self) -> Image:
        options = self._options
        subject = f"the image of {options.archive}"
        if self._check:
            return Image(subject)
        names = self._dependencies.image_names(options.archive)
        answer = self._ctr(NAME, "images", "import", options.archive, timeout=options.image_timeout)
        imported = self._lines(NAME, "images", "ls", "-q") or names
        chosen = next((name for name in spellings(options.image) if name in imported), None)
        if answer.ok and (chosen or (imported and not options.image)):
            chosen = chosen or imported[0]
            return Image(f"the image {chosen} of {options.archive}", (chosen,))
        return Image(subject, fault=self._tests.no_image(answer, imported))

    def _named_image(self) -> Image:
        options = self._options
        known = self._lines(_KUBERNETES, "images", "ls", "-q")
        chosen = next((name for name in spellings(options.image) if name in known), None)
        if chosen:
            return Image(f"the image {chosen}", (chosen,), _KUBERNETES)
        subject = f"the image {options.image}"
        if not options.pull:
            return Image(subject, fault=self._tests.no_image(None, ()))
        if self._check:
            return Image(subject)
        name = spellings(options.image)[-1]
        answer = self._ctr(NAME, "images", "pull", name, timeout=options.image_timeout)
        if not answer.ok:
            return Image(subject, fault=self._tests.no_image(answer, ()))
        return Image(subject, (name,))

    def _ctr(self, namespace: str, *argv: str, timeout: int = QUICK) -> Result:
        return self._dependencies.run([*self._ctr_start(namespace), *argv], timeout=timeout)

    def _ctr_start(self, namespace: str) -> list[str]:
        ctr = ctr_command(self._distribution, self._dependencies.reader.exists)
        return [*ctr, "--address", self._socket, "--namespace", namespace]

    def _lines(self, namespace: str, *argv: str) -> list[str]:
        answer = self._ctr(namespace, *argv)
        return answer.stdout.split() if answer.ok else []

    def _remove_container(self, namespace: str, name: str) -> None:
        """Remove a container that did not end or was not removed by ``--rm``."""
        if name not in self._lines(namespace, "containers", "ls", "-q"):
            return
        self._ctr(namespace, "tasks", "kill", "--signal", "SIGKILL", name)
        self._ctr(namespace, "tasks", "rm", "--force", name)
        self._ctr(namespace, "containers", "rm", name)
        self._ctr(namespace, "snapshots", "rm", name)


def spellings(image: str) -> tuple[str, ...]:
    """Return an image's name as given, and the full name under which containerd stores it."""
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
