# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge a GPU node layer by layer, from its facts and from what was tried on it. Pure.

One entry a layer: ``{node, layer, ok, code, cause, evidence, next_step, proof}``. ``ok`` is None
where a layer was not tried; then ``cause`` says why. ``proof`` says what was shown, and how.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._core.finding import Finding
from .._diagnosis.known_errors import explain, explain_one
from .._host.command import TIMED_OUT, Result
from .._toolkit.settings import faults, release_of
from .fabric import Fabric, fault, proof

PCI, MODULE, NVML, TOOLKIT, RUNTIME = "pci", "module", "nvml", "toolkit", "runtime"
NODE_LAYERS = (PCI, MODULE, NVML, TOOLKIT, RUNTIME)
ALLOCATABLE, POD = "allocatable", "pod"
# In the order in which each rests on the one before.
LAYERS = (*NODE_LAYERS, ALLOCATABLE, POD)

# A container that fails for one of these says the same as the driver's own layers.
_OF_THE_DRIVER = frozenset(
    {
        "driver_libraries_missing",
        "driver_library_mismatch",
        "driver_not_loaded",
        "gpu_unsupported",
        "no_devices",
        "nvml_failed",
    }
)
# Problems of the facts that are a failure of a runtime.
_CONFIG_PROBLEMS = {
    "containerd": ("containerd_config_invalid", "cri_disabled"),
    "docker": ("docker_config_invalid",),
    "crio": ("crio_config_invalid",),
}
_SMI_GPU = re.compile(r"^GPU \d+: ", re.MULTILINE)
_NO_SMI = re.compile(r"nvidia-smi\W*: (?:executable file not found|no such file)")
_CDI_DEVICE = re.compile(r"^nvidia\.com/gpu=(\S+)", re.MULTILINE)
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")
_MOST_OUTPUT = 400


@dataclass(frozen=True)
class Trial:
    """One container that was started, or why none was.

    :param way: how, in a few words; shown to the user.
    :param subject: what it was made of.
    :param devices: the GPUs that it was given: ``all``, or their numbers or UUIDs.
    :param counts: whether the lines of ``nvidia-smi -L`` in its output are its GPUs.
    :param bare: whether it has a root file system of ours, and so only what the toolkit puts there.
    :param expect: a regular expression that its output has to have; empty is none.
    :param result: what it answered; None where it was not started.
    :param skipped: why it was not started, and whose fault that is.
    """

    way: str
    subject: str = ""
    command: tuple[str, ...] = ()
    devices: str = "all"
    counts: bool = False
    bare: bool = False
    expect: str = ""
    result: Result | None = None
    skipped: Finding | None = None


@dataclass(frozen=True)
class Engine:
    """A container runtime of the node.

    :param listed: whether it knows the handler; None where it cannot be asked.
    :param how: how it was asked.
    :param fault: what stands before any question: it does not run, or its CRI does not answer.
    :param idle: why it takes no part.
    """

    name: str
    handler: str
    listed: bool | None = None
    handlers: tuple[str, ...] = ()
    default: str | None = None
    how: str = ""
    fault: Finding | None = None
    idle: str = ""
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True)
class Seen:
    """What was asked of the node beyond its facts; None is 'not asked'.

    :param smi: what ``nvidia-smi -L`` answered, where NVML is not in the facts.
    :param diagnosis: why the driver is not loaded.
    :param runtime: what ``nvidia-container-runtime --version`` answered.
    :param runtime_path: which program that was.
    :param cdi: what ``nvidia-ctk cdi list`` answered.
    :param cli: what ``nvidia-container-cli info`` answered.
    :param config_there: whether the toolkit's configuration file is there.
    :param fabric: how the NVLink fabric stands; None where the node has none.
    """

    smi: Result | None = None
    diagnosis: Finding | None = None
    runtime: Result | None = None
    runtime_path: str = "nvidia-container-runtime"
    cdi: Result | None = None
    cli: Result | None = None
    config_there: bool = False
    fabric: Fabric | None = None
    engines: tuple[Engine, ...] = ()


@dataclass(frozen=True)
class Wish:
    """What the node should be.

    :param gpus: how many GPUs it should have; None is as many as are on the bus.
    :param driver: the driver's exact version; empty is any.
    :param cdi: whether a CDI specification has to be there.
    :param default: the runtimes whose default the handler has to be.
    :param layers: those that are judged.
    """

    gpus: int | None = None
    driver: str = ""
    cdi: bool = False
    default: tuple[str, ...] = ()
    layers: tuple[str, ...] = NODE_LAYERS


@dataclass(frozen=True)
class Verdict:
    """How one layer stands."""

    layer: str
    ok: bool | None
    code: str = ""
    cause: str = ""
    evidence: str = ""
    next_step: str = ""
    proof: str = ""
    subject: str = ""

    def entry(self, node: str) -> dict[str, Any]:
        return {"node": node, **{name: getattr(self, name) for name in self.__dataclass_fields__}}


def verify(
    node: Mapping[str, Any], seen: Seen | None = None, wish: Wish | None = None
) -> list[Verdict]:
    """Return how the node's layers stand, in their order; one for each container runtime.

    :param node: the facts ``gpu_node``, read after all changes.
    """
    seen, wish = seen or Seen(), wish or Wish()
    gpus = own_gpus(node)
    if not gpus and not wish.gpus:
        cause = "No NVIDIA GPU is on this node's PCI bus: there is nothing to verify."
        return [Verdict(layer, None, "no_gpu", cause) for layer in NODE_LAYERS if _in(wish, layer)]
    found = [_pci(gpus, wish)]
    module = _module(node, gpus, seen, wish)
    found.append(module)
    nvml = _nvml(node, gpus, seen, module)
    found.append(nvml)
    toolkit = _toolkit(node, seen, wish, nvml)
    found.append(toolkit)
    driver_works = module.ok is not False and nvml.ok is not False
    found.extend(_runtimes(node, seen, wish, driver_works, toolkit))
    return [verdict for verdict in found if _in(wish, verdict.layer)]


def own_gpus(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the NVIDIA GPUs that this node itself is to use."""
    return [
        gpu for gpu in node["gpus"] if gpu["vendor"] == "nvidia" and not gpu.get("virtual_function")
    ]


def failed(verdicts: Iterable[Verdict]) -> bool:
    return any(verdict.ok is False for verdict in verdicts)


# -- layers -----------------------------------------------------------------------------------


def _pci(gpus: Sequence[Mapping[str, Any]], wish: Wish) -> Verdict:
    count = len(gpus)
    if wish.gpus is not None and count != wish.gpus:
        return Verdict(
            PCI,
            False,
            "gpu_count",
            f"{_number(count, 'NVIDIA GPU')} on the PCI bus, and {wish.gpus} should be there.",
            _addresses(gpus) or "no NVIDIA function on the bus",
            "See that all cards are seated and powered, and dmesg | grep -i -e pciehp -e 'fallen "
            "off'; or correct the number that is expected.",
        )
    others: dict[str | None, list[Mapping[str, Any]]] = {}
    for gpu in gpus:
        if gpu["kernel_driver"] != "nvidia":
            others.setdefault(gpu["kernel_driver"], []).append(gpu)
    for driver, bound in others.items():
        return _unbound(driver, bound)
    return Verdict(PCI, True, proof=f"{_number(count, 'GPU')} bound to the driver nvidia")


def _unbound(driver: str | None, gpus: Sequence[Mapping[str, Any]]) -> Verdict:
    names = ", ".join(f"{gpu['product'] or gpu['device_id']} at {gpu['address']}" for gpu in gpus)
    are = "is" if len(gpus) == 1 else "are"
    if driver is None:
        cause = f"{names} {are} bound to no driver."
        step = "The layer module says why NVIDIA's driver does not serve it."
    elif driver == "vfio-pci":
        cause = f"{names} {are} bound to vfio-pci: set aside for virtual machines."
        step = (
            "Leave this node out of the GPU nodes, or take the card back: remove it from "
            "vfio-pci.ids (kernel command line, modprobe.d) and reboot."
        )
    else:
        cause = f"{names} {are} bound to {driver}, not to NVIDIA's driver."
        step = f"Block {driver} (blacklist {driver} in /etc/modprobe.d), rebuild the initramfs, "
        step += "reboot; the role nvidia_driver does it."
    evidence = f"/sys/bus/pci/devices/{gpus[0]['address']}/driver is {driver or 'not there'}"
    return Verdict(PCI, False, "gpu_not_bound", cause, evidence, step)


def _module(
    node: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], seen: Seen, wish: Wish
) -> Verdict:
    driver = node["driver"]
    loaded, installed, userland = driver["loaded"], driver["installed"], driver["userland"]
    if not loaded:
        if seen.diagnosis is not None:
            return _of(MODULE, seen.diagnosis)
        there = f"Driver {installed} is installed, but its" if installed else "NVIDIA's"
        step = "Run kubegpu.nodes.site for this node: role nvidia_driver "
        step += "loads it, or says why it cannot." if installed else "installs and loads it."
        return Verdict(
            MODULE,
            False,
            "driver_not_loaded",
            f"{there} kernel module is not loaded.",
            "/proc/driver/nvidia/version is not there",
            step,
        )
    if installed and installed != loaded:
        return Verdict(
            MODULE,
            False,
            "pending_reboot",
            f"Driver {installed} is installed, but {loaded} is still loaded.",
            f"/proc/driver/nvidia/version says {loaded}",
            "Reboot the node, or reload the module while no program uses a GPU.",
        )
    if userland and userland != loaded:
        mismatch = explain("Driver/library version mismatch")[0]
        return Verdict(
            MODULE,
            False,
            mismatch.code,
            mismatch.cause,
            f"module {loaded}, libraries {userland}",
            mismatch.next_step,
        )
    if wish.driver and wish.driver != loaded:
        return Verdict(
            MODULE,
            False,
            "other_driver",
            f"Driver {loaded} is loaded, and {wish.driver} should be.",
            f"/proc/driver/nvidia/version says {loaded}",
            "Run kubegpu.nodes.site for this node, or correct the version that is expected.",
        )
    kind = f", {driver['kernel_module']} modules" if driver["kernel_module"] else ""
    return Verdict(MODULE, True, proof=f"{loaded} is loaded{kind}")


def _nvml(
    node: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], seen: Seen, module: Verdict
) -> Verdict:
    nvml = node["nvml"]
    if nvml is None:
        if not node["driver"]["loaded"]:
            return _waits(NVML, module)
        return _no_nvml(node, gpus, seen)
    devices = nvml["devices"]
    if len(devices) != len(gpus):
        known = {device["address"] for device in devices}
        missing = [gpu for gpu in gpus if gpu["address"] not in known]
        lost = f"; not there: {_addresses(missing)}" if missing and None not in known else ""
        return Verdict(
            NVML,
            False,
            "gpu_missing_in_nvml",
            f"The driver counts {_number(len(devices), 'GPU')}, and the PCI bus has {len(gpus)}.",
            f"NVML lists {', '.join(str(device['uuid']) for device in devices) or 'none'}{lost}",
            "Look at dmesg | grep -i -e NVRM -e Xid for the GPU that is missing: one that fell off "
            "the bus comes back by powering the node off and on.",
        )
    of_fabric = fault(node, seen.fabric)
    if of_fabric is not None:
        return _of(NVML, of_fabric)
    cuda = f", CUDA {nvml['cuda_version']}" if nvml["cuda_version"] else ""
    how = "pynvml" if node["python"]["pynvml"] is not None else "nvidia-smi"
    return Verdict(
        NVML,
        True,
        proof=f"{how} lists {_number(len(devices), 'GPU')}, driver {nvml['driver_version']}{cuda}"
        f"{proof(seen.fabric)}",
    )


def _no_nvml(node: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], seen: Seen) -> Verdict:
    smi = seen.smi
    if smi is None or smi.rc == 127:
        return Verdict(
            NVML,
            False,
            "nvidia_smi_missing",
            "The driver cannot be asked: neither nvidia-smi nor the Python library pynvml is on "
            "this node.",
            smi.words() if smi else "",
            "Install the driver's utilities (nvidia-utils-<branch>, nvidia-smi); the role "
            "nvidia_driver does it.",
        )
    if smi.ok and _SMI_GPU.search(smi.stdout):
        return _half_answer(node, smi)
    words = smi.stdout.strip() or smi.stderr.strip()
    if smi.rc == TIMED_OUT:
        words = f"nvidia-smi did not answer in time. {words}".strip()
    otherwise = Finding(
        "driver_not_answering",
        f"The driver {node['driver']['loaded']} is loaded, but does not answer.",
        _end(words),
        "Look at: dmesg | grep -i -e NVRM -e Xid.",
    )
    known = {"driver": node["driver"]["loaded"], "gpus": gpus}
    return _of(NVML, explain_one(words, otherwise, **known))


def _half_answer(node: Mapping[str, Any], smi: Result) -> Verdict:
    """Return what is wrong where the driver lists its GPUs, and does not say more of them."""
    driver = node["driver"]["loaded"]
    how = "pynvml" if node["python"]["pynvml"] is not None else "nvidia-smi -q -x"
    said = next(
        (one["evidence"] for one in node["problems"] if one["code"] == "driver_not_answering"), ""
    )
    count = len(_SMI_GPU.findall(smi.stdout))
    otherwise = Finding(
        "driver_not_answering",
        f"{how} fails, with driver {driver}; nvidia-smi -L answers, with {_number(count, 'GPU')}.",
        f"{how}: {_end(said) or 'no answer'}",
        f"Run {how.replace('pynvml', 'nvidia-smi -q')} on the node, with -i for one GPU after the "
        "other: one of them may not answer. Look at: dmesg | grep -i -e NVRM -e Xid.",
    )
    finding = explain_one(said, otherwise, driver=driver) if said else otherwise
    return _of(NVML, finding)


def _toolkit(node: Mapping[str, Any], seen: Seen, wish: Wish, nvml: Verdict) -> Verdict:
    toolkit, loaded = node["container_toolkit"], node["driver"]["loaded"]
    runtime = seen.runtime
    if runtime is None or runtime.rc == 127:
        package = toolkit["version"]
        return Verdict(
            TOOLKIT,
            False,
            "toolkit_missing",
            f"The container toolkit {package} is installed, but its program {seen.runtime_path} is "
            "not there."
            if package
            else "NVIDIA's container toolkit is not installed.",
            runtime.words() if runtime else f"there is no {seen.runtime_path}",
            # To the package manager all is there, so that site would change nothing.
            "Install the packages of the container toolkit again (apt-get install --reinstall, dnf "
            "reinstall): nvidia-container-toolkit and nvidia-container-toolkit-base."
            if package
            else "Run kubegpu.nodes.site for this node: role nvidia_container_toolkit installs it "
            "and configures the runtimes.",
        )
    # Before the program is judged: it does not even tell its version with a wrong setting.
    wrong = _wrong_settings(toolkit)
    if wrong is not None:
        return wrong
    if not runtime.ok:
        return Verdict(
            TOOLKIT,
            False,
            "toolkit_broken",
            f"{seen.runtime_path} does not answer.",
            runtime.words(),
            "Install the packages of the container toolkit again.",
        )
    if seen.config_there and toolkit["config"] is None:
        return Verdict(
            TOOLKIT,
            False,
            "toolkit_config_invalid",
            "The toolkit's configuration cannot be read: containers will not start.",
            "/etc/nvidia-container-runtime/config.toml is no TOML",
            "Correct it, or make it anew: nvidia-ctk config --in-place.",
        )
    fault = _cdi(node, seen, wish)
    if fault is not None:
        return fault
    if seen.cli is not None and not seen.cli.ok and seen.cli.rc != 127 and nvml.ok:
        words = seen.cli.words()
        otherwise = Finding(
            "toolkit_broken",
            "nvidia-container-cli does not find the driver, which works outside of it.",
            _end(words),
            "Ask it on the node: nvidia-container-cli --load-kmods --debug=/dev/stderr info.",
        )
        return _of(TOOLKIT, explain_one(words, otherwise, driver=loaded))
    version = _VERSION.search(runtime.stdout)
    said = [f"{seen.runtime_path.rpartition('/')[2]} {version.group() if version else 'answers'}"]
    spec = toolkit["cdi_spec"]
    if spec:
        made = f" for driver {spec['driver_version']}" if spec["driver_version"] else ""
        said.append(f"CDI specification {spec['path']}{made}")
    else:
        said.append("no CDI specification, and none is needed")
    return Verdict(TOOLKIT, True, proof="; ".join(said))


def _wrong_settings(toolkit: Mapping[str, Any]) -> Verdict | None:
    """Return the first setting of the toolkit's file with which no container starts."""
    found = faults(toolkit["config"] or {}, release_of(toolkit["version"]))
    wrong = [fault.message for fault in found if fault.stops]
    if not wrong:
        return None
    return Verdict(
        TOOLKIT,
        False,
        "toolkit_config_invalid",
        f"In the toolkit's configuration {wrong[0]}: no container that NVIDIA's runtime starts "
        "runs.",
        f"/etc/nvidia-container-runtime/config.toml: {'; '.join(wrong)}",
        "Correct it: nvidia_container_toolkit_settings, if the role set it, else the file.",
    )


def _cdi(node: Mapping[str, Any], seen: Seen, wish: Wish) -> Verdict | None:
    """Return what is wrong with the CDI specification, if anything is."""
    toolkit, loaded = node["container_toolkit"], node["driver"]["loaded"]
    spec = toolkit["cdi_spec"]
    again = (
        "Make it again: systemctl restart nvidia-cdi-refresh, or nvidia-ctk cdi generate "
        "--output=/var/run/cdi/nvidia.yaml; the module cdi_specification does it."
    )
    mode = (toolkit["config"] or {}).get("nvidia-container-runtime.mode")
    if spec is None:
        if not wish.cdi and mode != "cdi":
            return None
        why = "the toolkit's mode is cdi" if mode == "cdi" else "one is asked for"
        return Verdict(
            TOOLKIT,
            False,
            "cdi_missing",
            "There is no CDI specification.",
            f"no nvidia.yaml in /etc/cdi and /var/run/cdi; {why}",
            again,
        )
    made = spec["driver_version"]
    if loaded and made and made != loaded:
        return Verdict(
            TOOLKIT,
            False,
            "cdi_stale",
            f"The CDI specification was made for driver {made}, and {loaded} is loaded: containers "
            "that get their devices by CDI will not start.",
            spec["path"],
            again,
        )
    if seen.cdi is None or seen.cdi.rc == 127:
        return None
    if not seen.cdi.ok or not _CDI_DEVICE.search(seen.cdi.stdout):
        return Verdict(
            TOOLKIT,
            False,
            "cdi_invalid",
            f"The CDI specification {spec['path']} has no device of nvidia.com/gpu.",
            _end(seen.cdi.words()) or "nvidia-ctk cdi list names none",
            again,
        )
    return None


def _runtimes(
    node: Mapping[str, Any], seen: Seen, wish: Wish, driver_works: bool, toolkit: Verdict
) -> list[Verdict]:
    if not seen.engines:
        return [
            Verdict(
                RUNTIME,
                False,
                "no_container_runtime",
                "No container runtime is on this node.",
                "neither containerd, dockerd nor crio was found",
                "Install containerd, CRI-O or Docker (this collection never does), then run again.",
            )
        ]
    return [_engine(node, engine, wish, driver_works, toolkit) for engine in seen.engines]


def _engine(
    node: Mapping[str, Any], engine: Engine, wish: Wish, driver_works: bool, toolkit: Verdict
) -> Verdict:
    name, handler = engine.name, engine.handler
    if engine.idle:
        return Verdict(RUNTIME, None, "idle", engine.idle, subject=name)
    for problem in node["problems"]:
        if problem["code"] in _CONFIG_PROBLEMS.get(name, ()):
            fields = {key: problem[key] for key in ("code", "cause", "evidence", "next_step")}
            return Verdict(RUNTIME, False, **fields, subject=name)
    if engine.fault is not None:
        return _of(RUNTIME, engine.fault, subject=name)
    if engine.listed is False:
        return Verdict(
            RUNTIME,
            False,
            "handler_missing",
            f"{name} knows no handler {handler}.",
            f"{engine.how} names {', '.join(engine.handlers) or 'none'}",
            "Run kubegpu.nodes.site for this node: role nvidia_container_toolkit adds it, and "
            "restarts what has to be.",
            subject=name,
        )
    if name in wish.default and engine.default != handler:
        return _not_default(engine)
    tried = [_trial(node, engine, trial, driver_works, toolkit) for trial in engine.trials]
    worst = next((one for one in tried if one.ok is False), None) or next(
        (one for one in tried if one.ok is None), None
    )
    if worst is not None:
        return worst
    listed = f"{engine.how} names the handler {handler}" if engine.listed else engine.how
    proofs = [one.proof for one in tried]
    if not proofs:
        listed += "; no container was started"
    return Verdict(RUNTIME, True, proof="; ".join(filter(None, (listed, *proofs))), subject=name)


def _not_default(engine: Engine) -> Verdict:
    name, handler = engine.name, engine.handler
    step = f"Make {handler} the default (nvidia_container_toolkit_{name}_set_default: true)"
    if name == "docker":
        who = "containers that are started without --gpus or --runtime get no GPU."
        step += f", or start containers with --gpus or --runtime={handler}."
    else:
        who = "pods that name no RuntimeClass get no GPU, the device plugin among them."
        step += f", or give the device plugin runtimeClassName: {handler}."
    return Verdict(
        RUNTIME,
        False,
        "not_default",
        f"{name}'s default is {engine.default or 'runc'}, not {handler}: {who}",
        f"{engine.how}: default {engine.default or 'not set, which is runc'}",
        step,
        subject=name,
    )


def _trial(
    node: Mapping[str, Any], engine: Engine, trial: Trial, driver_works: bool, toolkit: Verdict
) -> Verdict:
    if trial.skipped is not None:
        ok = None if trial.skipped.code in ("check_mode", "not_asked") else False
        return _of(RUNTIME, trial.skipped, ok=ok, subject=engine.name)
    result = trial.result
    if result is None:
        return Verdict(RUNTIME, None, "not_asked", "No container was started.", subject=engine.name)
    fault = _container_fault(node, trial, result)
    if fault is None:
        command = " ".join(trial.command)
        what = f"{trial.way} ran {command!r} in {trial.subject}" if command else trial.way
        if trial.counts:
            what += f": {_number(len(_SMI_GPU.findall(result.stdout)), 'GPU')}"
            what += "" if trial.devices == "all" else f" of {trial.devices}"
        elif trial.expect:
            what += f": said {trial.expect!r}"
        return Verdict(RUNTIME, True, proof=what, subject=engine.name)
    if not driver_works and fault.code in _OF_THE_DRIVER:
        return Verdict(
            RUNTIME,
            None,
            "needs_driver",
            "The container waits for the driver, whose own layers failed.",
            fault.evidence,
            subject=engine.name,
        )
    if toolkit.ok is False and fault.code in ("container_failed", "runtime_missing"):
        return Verdict(
            RUNTIME,
            None,
            "needs_toolkit",
            "The container waits for the container toolkit, whose own layer failed.",
            fault.evidence,
            subject=engine.name,
        )
    return _of(RUNTIME, fault, subject=engine.name)


def _container_fault(node: Mapping[str, Any], trial: Trial, result: Result) -> Finding | None:
    """Return what is wrong with what a container did, if anything is."""
    text = "\n".join(part for part in (result.stderr.strip(), result.stdout.strip()) if part)
    known = {"driver": node["driver"]["loaded"], "gpus": own_gpus(node)}
    if result.rc == TIMED_OUT:
        return explain_one(
            text,
            Finding(
                "timed_out",
                f"{trial.way} did not end in time.",
                _end(text),
                "Give it more time (timeout); see whether nvidia-smi on the node answers, and what "
                "the journal of the runtime says.",
            ),
            **known,
        )
    if not result.ok and trial.counts and trial.bare and _NO_SMI.search(text):
        return Finding(
            "nothing_injected",
            f"{trial.way} started a container, but the toolkit put nothing of the driver into it.",
            _end(text),
            "Look at nvidia-container-runtime.mode in /etc/nvidia-container-runtime/config.toml, "
            "at what the handler's program is, and whether nvidia-container-cli list names "
            "nvidia-smi.",
        )
    if not result.ok:
        return explain_one(
            text,
            Finding(
                "container_failed",
                f"{trial.way} failed (exit status {result.rc}).",
                _end(text),
                "Try it by hand on the node; the journal of the runtime may say more.",
            ),
            **known,
        )
    if trial.counts:
        wanted = _wanted(node, trial.devices)
        have = len(_SMI_GPU.findall(result.stdout))
        if have != wanted:
            return Finding(
                "gpu_count_in_container",
                f"A container that was given {trial.devices} sees {_number(have, 'GPU')}, and "
                f"should see {wanted}.",
                _end(text),
                "Compare nvidia-smi -L on the node with nvidia-ctk cdi list, and look at the "
                "toolkit's config.toml.",
            )
    if trial.expect and not re.search(trial.expect, result.stdout, re.MULTILINE):
        return explain_one(
            text,
            Finding(
                "not_as_expected",
                f"The container ran, but did not say {trial.expect!r}.",
                _end(text) or "it said nothing",
                "See what the command does in the image; correct expect or command.",
            ),
            **known,
        )
    return None


def _wanted(node: Mapping[str, Any], devices: str) -> int:
    if devices == "all":
        nvml = node["nvml"]
        return len(nvml["devices"]) if nvml else len(own_gpus(node))
    return len(devices.split(","))


# -- small things -----------------------------------------------------------------------------


def _in(wish: Wish, layer: str) -> bool:
    return layer in wish.layers


def _of(layer: str, finding: Finding, ok: bool | None = False, subject: str = "") -> Verdict:
    return Verdict(
        layer,
        ok,
        finding.code,
        finding.cause,
        finding.evidence,
        finding.next_step,
        subject=subject,
    )


def _waits(layer: str, other: Verdict) -> Verdict:
    return Verdict(layer, None, "waits", f"It rests on the layer {other.layer}, which failed.")


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _addresses(gpus: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(str(gpu["address"]) for gpu in gpus)


def _end(text: str) -> str:
    """Return the last words of an output."""
    text = text.strip()
    return text if len(text) <= _MOST_OUTPUT else f"...{text[-_MOST_OUTPUT:]}"
