# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probe Docker: the handler, and test containers started by ``docker run``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._core.errors import KubegpuError
from .._core.finding import Finding
from .._core.versions import version_numbers
from .._host.command import Result
from .containers import ALL_GPUS, NAME, QUICK, SMI, ContainerTests, Image
from .types import ContainerRun, RuntimeState

_LABEL = "kubegpu.nodes=verify"


class DockerProbe:
    """Probes the Docker of a node."""

    def __init__(self, tests: ContainerTests) -> None:
        self._tests = tests
        self._dependencies = tests.dependencies
        self._options = tests.options
        self._check = tests.check

    def probe(self, node: Mapping[str, Any], facts: Mapping[str, Any], other: bool) -> RuntimeState:
        """Return the state of Docker.

        :param facts: the fact ``runtimes.docker``.
        :param other: whether Kubernetes can use another runtime of the node.
        """
        handler = self._options.handler
        if facts["active"] is False and other:
            return RuntimeState("docker", handler, idle="Docker is installed and does not run.")
        fault = self._tests.not_running("docker", facts)
        if fault:
            return RuntimeState("docker", handler, fault=fault)
        known: Mapping[str, Any] = facts["runtimes"] or {}
        listed = handler in known
        if listed:
            fault = self._tests.wrong_program("docker", known.get(handler))
        waits = None if fault else self._dependencies.docker_pending(facts, handler)
        containers: tuple[ContainerRun, ...] = ()
        if listed and not fault and self._options.container:
            containers = tuple(self._run_containers(node, facts))
        if not any(one.result for one in containers):
            # Otherwise the containers show whether it matters.
            fault = fault or waits
        return RuntimeState(
            "docker",
            handler,
            listed,
            tuple(sorted(known)),
            facts["default_runtime"],
            "docker info",
            fault=fault,
            pending=waits,
            containers=containers,
        )

    def clean(self) -> None:
        """Remove all that verification runs have created in Docker."""
        root = self._dependencies.root
        # A command could start dockerd by its socket; one that never ran has nothing of ours.
        if not root.exists() or not self._dependencies.reader.exists("/run/docker.pid"):
            return
        ours = ("--quiet", "--filter", f"label={_LABEL}")
        for name in self._docker("ps", "--all", *ours).stdout.split():
            self._docker("rm", "--force", "--volumes", name)
        for name in dict.fromkeys(self._docker("images", "--quiet", NAME).stdout.split()):
            self._docker("rmi", "--force", name, timeout=60)
        for name in filter(None, root.recorded()):
            # Without --force: another container may use it by now.
            self._docker("rmi", name, timeout=60)

    def _run_containers(
        self, node: Mapping[str, Any], facts: Mapping[str, Any]
    ) -> Iterator[ContainerRun]:
        tests, handler = self._tests, self._options.handler
        command, counts_gpus = tests.command(node)
        version = version_numbers(facts["version"])[:2]
        knows_gpus = not version or version >= (19, 3)
        image = self._image(command)
        for devices in self._options.devices:
            methods = [(f"docker run --runtime {handler}", ["--runtime", handler])]
            if knows_gpus:
                methods.append((f"docker run --gpus {devices}", ["--gpus", _gpus(devices)]))
            for method, flags in methods:
                skipped = tests.not_started(method, image, command, devices)
                if skipped:
                    yield skipped
                    continue
                name = tests.new_name()
                argv = ["run", "--rm", "--name", name, "--label", _LABEL, "--network", "none"]
                argv += flags
                for variable in tests.environment(devices, flags[0] == "--runtime"):
                    argv += ["--env", variable]
                argv += [*image.arguments, *command]
                result = tests.run(["docker", *argv])
                if not result.ok:
                    self._docker("rm", "--force", "--volumes", name)
                finished = tests.finished(method, image, command, devices, counts_gpus, result)
                visible = [] if flags[0] == "--gpus" else ["--env", ALL_GPUS]
                manual = ["docker", "run", "--rm", *flags, *visible, "ubuntu:24.04", *SMI]
                yield replace(finished, manual=shlex.join(manual))

    def _image(self, command: Sequence[str]) -> Image:
        if self._docker("--version").rc == 127:
            missing = Finding(
                "not_asked",
                "The program docker is not on this node, so that no container was started by "
                "dockerd.",
                "",
                "Install docker-cli, or leave Docker out: engines: [containerd].",
            )
            return Image("", fault=missing)
        if self._options.archive:
            return self._archive()
        if self._options.image:
            return self._named_image()

        def imported(_root: str) -> tuple[str, ...]:
            image = f"{NAME}:{self._dependencies.token}"
            path = self._dependencies.root.pack("rootfs.tar")
            answer = self._docker("import", path, image, timeout=self._options.timeout)
            if not answer.ok:
                raise KubegpuError(
                    "Docker did not import the root file system.", evidence=answer.last_output()
                )
            return (image,)

        return self._tests.own_root(command, imported)

    def _named_image(self) -> Image:
        options = self._options
        subject = f"the image {options.image}"
        if self._has(options.image):
            return Image(subject, (options.image,))
        if not options.pull:
            return Image(subject, fault=self._tests.no_image(None, ()))
        if self._check:
            return Image(subject)
        self._dependencies.root.record(options.image)
        answer = self._docker("pull", options.image, timeout=options.image_timeout)
        if not answer.ok:
            return Image(subject, fault=self._tests.no_image(answer, ()))
        return Image(subject, (options.image,))

    def _archive(self) -> Image:
        options = self._options
        subject = f"the image of {options.archive}"
        if self._check:
            return Image(subject)
        names = self._dependencies.image_names(options.archive)
        chosen = options.image or (names[0] if names else "")
        if not chosen:
            answer = Result(1, "", "the archive gives its image no name")
            return Image(subject, fault=self._tests.no_image(answer, names))
        # ``docker load`` would take the name from an existing image.
        if not self._has(chosen):
            for name in names:
                if not self._has(name):
                    self._dependencies.root.record(name)
            answer = self._docker(
                "load", "--quiet", "--input", options.archive, timeout=options.image_timeout
            )
            if not answer.ok or not self._has(chosen):
                return Image(subject, fault=self._tests.no_image(answer, names))
        return Image(f"the image {chosen} of {options.archive}", (chosen,))

    def _has(self, image: str) -> bool:
        return self._docker("image", "inspect", "--format", "{{.Id}}", image).ok

    def _docker(self, *argv: str, timeout: int = QUICK) -> Result:
        return self._dependencies.run(["docker", *argv], timeout=timeout)


def _gpus(devices: str) -> str:
    """Return the value of --gpus, in which an unquoted comma separates options."""
    return devices if devices == "all" else f'"device={devices}"'
