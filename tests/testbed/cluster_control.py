# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

They run on this machine, as this user. etcd listens on loopback and wants certificates; the API
server listens on the one address that is asked for, loopback or the fleet's own bridge, with a
certificate of an authority made here.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.testbed import cluster_binaries
from tests.testbed.cluster_pki import Authority, signing_key
from tests.testbed.processes import Background
from tests.testbed.shell import TestbedError, run, say

LOOPBACK = "127.0.0.1"
SERVICES = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"
SERVICE_DNS = "10.96.0.10"
DNS_NAME = "kube.testbed.example"
_NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_PATIENCE = 600.0
# Made nodes have no kubelet: nobody may find out that they do not answer.
_NO_NODES = "*,-nodelifecycle,-nodeipam,-ttl,-podgc"
#: The account of playbooks/files/rbac.yml. Its requests are in the audit log, those of others not.
ACCOUNT = "system:serviceaccount:kubegpu:kubegpu-ansible"
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [ACCOUNT]}, {"level": "None"}],
}


@dataclass(frozen=True)
class ControlPlane:
    """What runs from a folder: where the server is, and how an administrator speaks to it."""

    home: Path

    @property
    def kubeconfig(self) -> Path:
        return self.home / "kubeconfig"

    @property
    def authority(self) -> Authority:
        return Authority(self.home / "pki")

    @property
    def ca_file(self) -> Path:
        return self.authority.certificate

    @property
    def admin_certificate(self) -> tuple[Path, Path]:
        """The administrator's certificate and key."""
        path = self.home / "pki" / "client-kubeconfig.crt"
        return path, path.with_suffix(".key")

    @property
    def server(self) -> str:
        return (self.home / "server").read_text().strip()

    @property
    def audit_log(self) -> Path:
        """The requests of :data:`ACCOUNT`, one event of audit.k8s.io a line."""
        return self.home / "audit.log"

    def runs(self) -> bool:
        """Whether its server runs."""
        return self._background("kube-apiserver").runs()

    def up(
        self,
        address: str = LOOPBACK,
        port: int = 0,
        *,
        nodes: bool = False,
        with_parent: bool = False,
    ) -> ControlPlane:
        """Start a new one; with ``nodes`` it looks after nodes and has a scheduler."""
        programs = cluster_binaries.programs()
        self.down()
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(mode=0o700, parents=True)
        started = time.monotonic()
        port = port or _free_ports(address, 1)[0]
        etcd = _free_ports(LOOPBACK, 2)
        server = f"https://{address}:{port}"
        (self.home / "server").write_text(f"{server}\n")
        self._certificates(address, server)
        (self.home / "audit.json").write_text(json.dumps(_AUDIT))
        commands = {
            "etcd": self._etcd(*etcd),
            "kube-apiserver": self._apiserver(address, port, etcd[0]),
            "kube-controller-manager": self._controllers(nodes),
            "kube-scheduler": self._scheduler(),
        }
        if not nodes:
            del commands["kube-scheduler"]
        try:
            for name, arguments in commands.items():
                argv = [str(programs / name), *arguments]
                self._background(name).start(argv, with_parent=with_parent)
                if name == "kube-apiserver":
                    self._wait(list(commands)[:2])
            self._wait_for_default_account()
        except BaseException:
            self.down()
            raise
        say(f"control plane: {server} is ready after {time.monotonic() - started:.1f} s")
        return self

    def down(self) -> None:
        """Stop it, the last started first; certificates and logs stay."""
        for name in reversed(_NAMES):
            self._background(name).stop()

    def remove(self) -> None:
        """Stop it and remove its folder."""
        self.down()
        shutil.rmtree(self.home, ignore_errors=True)

    def kubectl(self, *arguments: str, check: bool = True, stdin: str | None = None) -> str:
        """One kubectl command as administrator; gives what it printed."""
        argv = [*kubectl_argv(self.kubeconfig), *arguments]
        done = run(argv, check=check, stdin=stdin, timeout=900)
        return done.stdout if check else done.stdout + done.stderr

    def get(self, path: str) -> dict[str, object]:
        """What the API server answers to an administrator's GET."""
        with self._open(path) as answer:
            data = json.loads(answer.read())
        return data if isinstance(data, dict) else {}

    def _open(self, path: str):
        context = ssl.create_default_context(cafile=str(self.ca_file))
        context.load_cert_chain(*self.admin_certificate)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        return opener.open(f"{self.server}{path}", timeout=10)

    def _background(self, name: str) -> Background:
        return Background(name, self.home)

    def _certificates(self, address: str, server: str) -> None:
        pki = Authority.make(self.home / "pki")
        pki.sign("etcd", "etcd", names=(LOOPBACK, "localhost"))
        names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")
        pki.sign(
            "apiserver",
            "kube-apiserver",
            names=(*dict.fromkeys((address, LOOPBACK)), SERVICE_ADDRESS, DNS_NAME, *names),
        )
        pki.sign("kubelet-client", "kube-apiserver-kubelet-client", ("system:masters",))
        signing_key(self.home / "pki" / "accounts.key")
        pki.kubeconfig(self.kubeconfig, server, "kubegpu-admin", ("system:masters",))
        for name in ("kube-controller-manager", "kube-scheduler"):
            pki.kubeconfig(self.home / f"{name}.kubeconfig", server, f"system:{name}")

    def _etcd(self, port: int, peers: int) -> list[str]:
        pki = self.home / "pki"
        return [
            "--name=testbed",
            f"--data-dir={self.home}/etcd",
            f"--listen-client-urls=https://{LOOPBACK}:{port}",
            f"--advertise-client-urls=https://{LOOPBACK}:{port}",
            f"--listen-peer-urls=https://{LOOPBACK}:{peers}",
            f"--initial-advertise-peer-urls=https://{LOOPBACK}:{peers}",
            f"--initial-cluster=testbed=https://{LOOPBACK}:{peers}",
            f"--cert-file={pki}/etcd.crt",
            f"--key-file={pki}/etcd.key",
            f"--trusted-ca-file={pki}/ca.crt",
            "--client-cert-auth",
            f"--peer-cert-file={pki}/etcd.crt",
            f"--peer-key-file={pki}/etcd.key",
            f"--peer-trusted-ca-file={pki}/ca.crt",
            "--peer-client-cert-auth",
        ]

    def _apiserver(self, address: str, port: int, etcd: int) -> list[str]:
        pki = self.home / "pki"
        return [
            f"--bind-address={address}",
            f"--advertise-address={address}",
            f"--secure-port={port}",
            f"--etcd-servers=https://{LOOPBACK}:{etcd}",
            f"--etcd-cafile={pki}/ca.crt",
            f"--etcd-certfile={pki}/etcd.crt",
            f"--etcd-keyfile={pki}/etcd.key",
            f"--tls-cert-file={pki}/apiserver.crt",
            f"--tls-private-key-file={pki}/apiserver.key",
            f"--client-ca-file={pki}/ca.crt",
            f"--kubelet-certificate-authority={pki}/ca.crt",
            f"--kubelet-client-certificate={pki}/kubelet-client.crt",
            f"--kubelet-client-key={pki}/kubelet-client.key",
            "--kubelet-preferred-address-types=InternalIP",
            f"--service-account-key-file={pki}/accounts.key",
            f"--service-account-signing-key-file={pki}/accounts.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={SERVICES}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            "--profiling=false",
            f"--audit-policy-file={self.home}/audit.json",
            f"--audit-log-path={self.audit_log}",
        ]

    def _controllers(self, nodes: bool) -> list[str]:
        pki = self.home / "pki"
        return [
            *_component(self.home / "kube-controller-manager.kubeconfig"),
            f"--controllers={'*' if nodes else _NO_NODES}",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={pki}/accounts.key",
            f"--root-ca-file={pki}/ca.crt",
        ]

    def _scheduler(self) -> list[str]:
        return _component(self.home / "kube-scheduler.kubeconfig")

    def _wait(self, names: Sequence[str]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not self._healthy():
            for name in names:
                program = self._background(name)
                if not program.runs():
                    raise TestbedError(f"{name} has ended; see {program.log}\n{program.tail()}")
            if time.monotonic() > deadline:
                log = self._background("kube-apiserver").log
                raise TestbedError(
                    f"the API server is not ready after {_PATIENCE:.0f} s; see {log}"
                )
            time.sleep(0.1)

    def _healthy(self) -> bool:
        with contextlib.suppress(OSError, urllib.error.URLError), self._open("/readyz") as answer:
            return bytes(answer.read()) == b"ok"
        return False

    def _wait_for_default_account(self) -> None:
        """Pods need it, and it shows that the controllers work."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            with contextlib.suppress(urllib.error.HTTPError):
                account = self.get("/api/v1/namespaces/default/serviceaccounts/default")
                if account.get("secrets"):
                    return
            program = self._background("kube-controller-manager")
            if not program.runs() or time.monotonic() > deadline:
                raise TestbedError(f"no default account; see {program.log}\n{program.tail()}")
            time.sleep(0.1)


def kubectl_argv(kubeconfig: Path) -> list[str]:
    """The first words of a kubectl command line."""
    return [str(cluster_binaries.programs() / "kubectl"), f"--kubeconfig={kubeconfig}"]


def _component(kubeconfig: Path) -> list[str]:
    """It speaks to the API server only, and nobody speaks to it."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--port=0",
        "--secure-port=0",
        "--profiling=false",
    ]


def _free_ports(address: str, number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _index in range(number)]
        for one in sockets:
            one.bind((address, 0))
        return [int(one.getsockname()[1]) for one in sockets]
