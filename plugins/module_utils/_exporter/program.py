# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the metrics of all GPUs of a node for the textfile collector of node_exporter.

The source of this file is installed on nodes, where a timer runs it: it needs Python 3.6 and its
standard library only, and imports nothing of this collection.

NVIDIA GPUs are read by one call of nvidia-smi, other ones from sysfs, and Xids from the kernel's
log. A source that fails or hangs costs its own metrics, never those of the others.
"""

import argparse
import contextlib
import errno
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

# Seconds to wait for a process that was killed; one in the kernel (state D) does not end.
_KILL_SECONDS = 2.0
_MAX_OUTPUT = 1 << 20
_MAX_LABEL = 128
_MAX_GPUS = 256
# Bytes of the kernel's log in one run. Its buffer is smaller by default.
_MAX_LOG = 16 << 20
# Pairs of GPU and Xid that are counted.
_MAX_XIDS = 1000

_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,9})?\Z")
_ADDRESS = re.compile(r"(?:[0-9a-f]{4})?([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\Z")
# Lines of the kernel have a priority below 8, those that programs write have not. Xids of MIG name
# the instance behind the address.
_XID = re.compile(
    r"[0-7],(?P<sequence>\d+),[^;]{0,200};NVRM: Xid \((?:PCI:)?(?P<address>[0-9a-fA-F:.]{7,16})"
    r"(?: GPU-I:\d{1,3})?\): (?P<xid>\d{1,5})(?!\d)"
)
_SEQUENCE = re.compile(r"\d+,(\d+),")

_MEBIBYTE = 1048576.0
_MEGAHERTZ = 1e6
_PERCENT = 0.01

# Metric -> type and help.
METRICS = {
    "kubegpu_textfile_info": ("gauge", "The program that wrote this file."),
    "kubegpu_textfile_source_up": ("gauge", "Whether a source of the metrics answered."),
    "kubegpu_gpus_expected": ("gauge", "GPUs that the node is expected to have."),
    "kubegpu_gpu_present": ("gauge", "Whether an expected GPU is on the PCI bus."),
    "kubegpu_gpu_info": ("gauge", "A GPU that its driver shows."),
    "kubegpu_gpu_temperature_celsius": ("gauge", "Temperature of the GPU."),
    "kubegpu_gpu_utilization_ratio": ("gauge", "Share of time in which the GPU worked."),
    "kubegpu_gpu_memory_used_bytes": ("gauge", "Memory in use."),
    "kubegpu_gpu_memory_total_bytes": ("gauge", "Memory of the GPU."),
    "kubegpu_gpu_power_watts": ("gauge", "Power draw."),
    "kubegpu_gpu_power_limit_watts": ("gauge", "Limit of the power draw."),
    "kubegpu_gpu_energy_joules_total": ("counter", "Energy since the driver was loaded."),
    "kubegpu_gpu_clock_hertz": ("gauge", "Clock of the GPU's processors."),
    "kubegpu_gpu_memory_clock_hertz": ("gauge", "Clock of the GPU's memory."),
    "kubegpu_gpu_fan_ratio": ("gauge", "Speed of the fan, of its highest."),
    "kubegpu_gpu_pcie_generation": ("gauge", "Generation of the PCIe link now."),
    "kubegpu_gpu_pcie_width": ("gauge", "Lanes of the PCIe link now."),
    "kubegpu_gpu_ecc_errors_total": ("counter", "Memory errors since the driver was loaded."),
    "kubegpu_gpu_row_remap_failure": ("gauge", "Whether a row of memory could not be remapped."),
    "kubegpu_gpu_row_remap_pending": ("gauge", "Whether a row is remapped with the next reset."),
    "kubegpu_gpu_clock_slowdown": ("gauge", "Whether the hardware or heat slows the GPU down."),
    "kubegpu_gpu_xid_errors_total": ("counter", "Xids in the kernel's log since boot."),
}

# Field of nvidia-smi -> metric, factor and further labels.
_FIELDS = (
    ("temperature.gpu", "kubegpu_gpu_temperature_celsius", 1.0, {}),
    ("utilization.gpu", "kubegpu_gpu_utilization_ratio", _PERCENT, {}),
    ("memory.used", "kubegpu_gpu_memory_used_bytes", _MEBIBYTE, {}),
    ("memory.total", "kubegpu_gpu_memory_total_bytes", _MEBIBYTE, {}),
    ("power.draw", "kubegpu_gpu_power_watts", 1.0, {}),
    ("power.limit", "kubegpu_gpu_power_limit_watts", 1.0, {}),
    ("clocks.sm", "kubegpu_gpu_clock_hertz", _MEGAHERTZ, {}),
    ("clocks.mem", "kubegpu_gpu_memory_clock_hertz", _MEGAHERTZ, {}),
    ("fan.speed", "kubegpu_gpu_fan_ratio", _PERCENT, {}),
    ("pcie.link.gen.current", "kubegpu_gpu_pcie_generation", 1.0, {}),
    ("pcie.link.width.current", "kubegpu_gpu_pcie_width", 1.0, {}),
    (
        "ecc.errors.corrected.volatile.total",
        "kubegpu_gpu_ecc_errors_total",
        1.0,
        {"type": "corrected"},
    ),
    (
        "ecc.errors.uncorrected.volatile.total",
        "kubegpu_gpu_ecc_errors_total",
        1.0,
        {"type": "uncorrected"},
    ),
)  # type: Tuple[Tuple[str, str, float, Dict[str, str]], ...]
# Fields that say Yes, No, Active or Not Active.
_FLAGS = (
    ("remapped_rows.failure", "kubegpu_gpu_row_remap_failure", {}),
    ("remapped_rows.pending", "kubegpu_gpu_row_remap_pending", {}),
    (
        "clocks_throttle_reasons.hw_thermal_slowdown",
        "kubegpu_gpu_clock_slowdown",
        {"reason": "hw_thermal"},
    ),
    (
        "clocks_throttle_reasons.hw_power_brake_slowdown",
        "kubegpu_gpu_clock_slowdown",
        {"reason": "hw_power_brake"},
    ),
    (
        "clocks_throttle_reasons.sw_thermal_slowdown",
        "kubegpu_gpu_clock_slowdown",
        {"reason": "sw_thermal"},
    ),
)  # type: Tuple[Tuple[str, str, Dict[str, str]], ...]
_WORDS = {"yes": 1.0, "no": 0.0, "active": 1.0, "not active": 0.0, "1": 1.0, "0": 0.0}
# The name is last: it may contain commas.
QUERY = (
    "index",
    "uuid",
    "pci.bus_id",
    "driver_version",
    *(field[0] for field in _FIELDS),
    *(flag[0] for flag in _FLAGS),
    "name",
)
# Without the fields that older drivers do not know: an unknown one fails the whole query.
_PLAIN_QUERY = tuple(field for field in QUERY if not field.startswith(("remapped", "clocks_")))

_VENDORS = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}

Sample = NamedTuple("Sample", [("metric", str), ("labels", Dict[str, str]), ("value", float)])


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Write the file once; return the exit status."""
    options = _parser().parse_args(arguments)
    state = _read_state(options.state)
    samples = [
        Sample("kubegpu_textfile_info", {"version": options.release}, 1.0),
        Sample("kubegpu_gpus_expected", {}, float(len(options.gpu))),
    ]
    samples += presence(options.sysfs, options.gpu)
    if options.nvidia_smi:
        samples += nvidia(options.nvidia_smi, options.timeout, state)
    samples += others(options.sysfs)
    samples += xids(options.kernel_log, state)
    write(options.output, render(samples))
    _write_state(options.state, state)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", required=True, help="the file to write (.prom)")
    parser.add_argument("--state", required=True, help="what the next run has to know (/run)")
    parser.add_argument("--gpu", action="append", default=[], help="address of an expected GPU")
    parser.add_argument("--nvidia-smi", default="", help="the program; empty: none is asked")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds for nvidia-smi")
    parser.add_argument("--kernel-log", default="/dev/kmsg")
    parser.add_argument("--sysfs", default="/sys")
    parser.add_argument("--release", default="", help="the release of the collection")
    return parser


def presence(sysfs: str, addresses: Sequence[str]) -> List[Sample]:
    """Return for each expected GPU whether it is on the PCI bus."""
    return [
        Sample(
            "kubegpu_gpu_present",
            {"pci_bus_id": address},
            float(os.path.exists("{}/bus/pci/devices/{}/vendor".format(sysfs, address))),
        )
        for address in sorted(set(addresses))
    ]


# --- NVIDIA


def nvidia(program: str, timeout: float, state: Dict[str, Any]) -> List[Sample]:
    """Return the metrics of NVIDIA's GPUs, and whether nvidia-smi answered."""
    samples = []  # type: List[Sample]
    answered = False
    for fields in (QUERY, _PLAIN_QUERY):
        argv = [program, "--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits"]
        output, status = run(argv, timeout, state)
        samples = parse_rows(output, fields)
        answered = status == 0 and bool(samples)
        if status is None or "is not a valid field" not in output:
            break
    return [*samples, _source("nvidia-smi", answered)]


def parse_rows(output: str, fields: Sequence[str]) -> List[Sample]:
    """Return the samples of the lines that nvidia-smi printed; lines of another form are errors."""
    samples = []  # type: List[Sample]
    for line in output.splitlines()[:_MAX_GPUS]:
        texts = [text.strip() for text in line.split(",", len(fields) - 1)]
        row = dict(zip(fields, texts))
        address = pci_address(row.get("pci.bus_id", ""))
        if len(texts) != len(fields) or not address or not row["index"].isdigit():
            continue
        labels = {"gpu": row["index"], "uuid": row["uuid"], "pci_bus_id": address}
        info = {"name": row["name"], "vendor": "nvidia", "driver": row["driver_version"]}
        samples.append(Sample("kubegpu_gpu_info", dict(labels, **info), 1.0))
        for field, metric, factor, more in _FIELDS:
            if _NUMBER.match(row.get(field, "")):
                value = float(row[field]) * factor
                samples.append(Sample(metric, dict(labels, **more), value))
        for field, metric, more in _FLAGS:
            flag = _WORDS.get(row.get(field, "").lower())
            if flag is not None:
                samples.append(Sample(metric, dict(labels, **more), flag))
    return samples


def pci_address(text: str) -> str:
    """Return the address as sysfs writes it, from ``00000000:3B:00.0``; empty if it is none."""
    match = _ADDRESS.match(text.lower())
    return match.group(1) if match else ""


def run(argv: Sequence[str], timeout: float, state: Dict[str, Any]) -> Tuple[str, Optional[int]]:
    """Return output and exit status of a program; without a status it hung or could not start.

    A process that cannot be killed waits in the kernel for the driver. No second one is started
    before it has ended, so that they do not become more with each run.
    """
    if _is_alive(state.get("hung")):
        return "", None
    state.pop("hung", None)
    with tempfile.TemporaryFile() as output:
        try:
            # This file runs as a program of its own, without Ansible.
            process = subprocess.Popen(  # pylint: disable=ansible-bad-function
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(os.environ, LC_ALL="C"),
            )
        except OSError:
            return "", None
        status = None  # type: Optional[int]
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            try:
                process.wait(_KILL_SECONDS)
            except subprocess.TimeoutExpired:
                state["hung"] = [process.pid, _started(process.pid)]
        output.seek(0)
        return output.read(_MAX_OUTPUT).decode("utf-8", "replace"), status


def _is_alive(process: Any) -> bool:
    if not isinstance(process, list) or len(process) != 2 or not isinstance(process[0], int):
        return False
    return process[1] is not None and _started(process[0]) == process[1]


def _started(pid: int) -> Optional[str]:
    """Return the start time of a process in ticks; None if it does not run."""
    fields = _read("/proc/{}/stat".format(pid)).rpartition(")")[2].split()
    # A zombie has ended.
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else None


# --- AMD and Intel


def others(sysfs: str) -> List[Sample]:
    """Return what sysfs has of GPUs of AMD and Intel."""
    samples = []  # type: List[Sample]
    cards = _list(sysfs + "/class/drm")
    for card in sorted(card for card in cards if re.match(r"card\d{1,3}\Z", card)):
        folder = "{}/class/drm/{}/device".format(sysfs, card)
        vendor = _VENDORS.get(_read(folder + "/vendor").strip())
        address = pci_address(os.path.basename(os.path.realpath(folder)))
        if vendor not in ("amd", "intel") or not address:
            continue
        labels = {"gpu": card, "uuid": _read(folder + "/unique_id").strip(), "pci_bus_id": address}
        driver = os.path.basename(os.path.realpath(folder + "/driver"))
        info = {"name": _read(folder + "/product_name").strip(), "vendor": vendor, "driver": driver}
        samples.append(Sample("kubegpu_gpu_info", dict(labels, **info), 1.0))
        samples += [
            Sample(metric, dict(labels, **more), value)
            for metric, more, value in _sysfs_values(folder, os.path.dirname(folder))
        ]
    return samples


def _sysfs_values(device: str, card: str) -> Iterator[Tuple[str, Dict[str, str], float]]:
    files = [
        (device + "/gpu_busy_percent", "kubegpu_gpu_utilization_ratio", _PERCENT),
        (device + "/mem_info_vram_used", "kubegpu_gpu_memory_used_bytes", 1.0),
        (device + "/mem_info_vram_total", "kubegpu_gpu_memory_total_bytes", 1.0),
        (card + "/gt_act_freq_mhz", "kubegpu_gpu_clock_hertz", _MEGAHERTZ),
    ]
    for name in _list(device + "/hwmon")[:1]:
        monitor = "{}/hwmon/{}/".format(device, name)
        # Of two names for a value the first one that is there counts: amdgpu has the average or
        # the present power, xe has the package's temperature as the second one.
        for metric, factor, names in (
            ("kubegpu_gpu_temperature_celsius", 0.001, ("temp1_input", "temp2_input")),
            ("kubegpu_gpu_power_watts", 1e-6, ("power1_average", "power1_input")),
            ("kubegpu_gpu_power_limit_watts", 1e-6, ("power1_cap", "power1_max")),
            ("kubegpu_gpu_energy_joules_total", 1e-6, ("energy1_input",)),
            ("kubegpu_gpu_clock_hertz", 1.0, ("freq1_input",)),
            ("kubegpu_gpu_memory_clock_hertz", 1.0, ("freq2_input",)),
        ):
            files += [(monitor + one, metric, factor) for one in names]
    seen = set()
    for path, metric, factor in files:
        text = _read(path).strip()
        if metric not in seen and _NUMBER.match(text):
            seen.add(metric)
            yield metric, {}, float(text) * factor
    errors = dict(re.findall(r"^(ue|ce): (\d{1,18})$", _read(device + "/ras/umc_err_count"), re.M))
    for name, kind in (("ce", "corrected"), ("ue", "uncorrected")):
        if name in errors:
            yield "kubegpu_gpu_ecc_errors_total", {"type": kind}, float(errors[name])


# --- The kernel's log


def xids(path: str, state: Dict[str, Any]) -> List[Sample]:
    """Return how often each Xid was logged since boot, and whether the log can be read.

    The log forgets its first lines. The state, which a boot empties as it does the log, has the
    number of the last line that was counted.
    """
    last = state.get("sequence")
    last = last if isinstance(last, int) else -1
    counted = state.get("xids")
    counts = {
        key: count
        for key, count in (counted if isinstance(counted, dict) else {}).items()
        if isinstance(count, int)
    }
    try:
        lines = read_log(path).splitlines()
    except OSError:
        return [_source("kernel-log", False)]
    for line in lines:
        number = _SEQUENCE.match(line)
        if number is None or int(number.group(1)) <= last:
            continue
        last = int(number.group(1))
        found = _XID.match(line)
        if found:
            key = "{} {}".format(_log_address(found.group("address")), int(found.group("xid")))
            if key in counts or len(counts) < _MAX_XIDS:
                counts[key] = counts.get(key, 0) + 1
    state["sequence"], state["xids"] = last, counts
    samples = []
    for key, count in sorted(counts.items()):
        address, _blank, xid = key.partition(" ")
        labels = {"pci_bus_id": address, "xid": xid}
        samples.append(Sample("kubegpu_gpu_xid_errors_total", labels, float(count)))
    return [*samples, _source("kernel-log", True)]


def _log_address(text: str) -> str:
    """Return ``0000:3b:00.0``: the log leaves out the function, and may write a long domain."""
    text = text.lower() if "." in text else text.lower() + ".0"
    return pci_address(text) or text


def read_log(path: str) -> str:
    """Return the kernel's log as /dev/kmsg gives it: one line for each reading."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    parts = []  # type: List[bytes]
    size = 0
    try:
        while size < _MAX_LOG:
            try:
                part = os.read(number, 65536)
            except OSError as error:
                # EPIPE: the line was overwritten before it was read, and the next one comes.
                if error.errno == errno.EPIPE:
                    continue
                if error.errno == errno.EAGAIN:
                    break
                raise
            if not part:
                break
            parts.append(part)
            size += len(part)
    finally:
        os.close(number)
    return b"".join(parts).decode("utf-8", "replace")


# --- The files


def _source(name: str, answered: bool) -> Sample:
    return Sample("kubegpu_textfile_source_up", {"source": name}, float(answered))


def render(samples: Sequence[Sample]) -> str:
    """Return the samples in Prometheus' text format; each metric is one group, without doubles."""
    lines = []
    for metric, (kind, text) in METRICS.items():
        found = {}  # type: Dict[str, float]
        for sample in samples:
            if sample.metric == metric:
                found.setdefault(_labels(sample.labels), sample.value)
        if found:
            lines += ["# HELP {} {}".format(metric, text), "# TYPE {} {}".format(metric, kind)]
            lines += ["{}{} {!r}".format(metric, text, value) for text, value in found.items()]
    return "".join(line + "\n" for line in lines)


def _labels(labels: Dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join('{}="{}"'.format(name, _escape(labels[name])) for name in labels) + "}"


def _escape(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in text)[:_MAX_LABEL]
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def write(path: str, text: str) -> None:
    """Replace the file as a whole: node_exporter reads the old or the new one, never a part."""
    folder, name = os.path.split(path)
    # The collector reads *.prom only.
    number, temporary = tempfile.mkstemp(prefix="." + name, suffix=".tmp", dir=folder)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _read_state(path: str) -> Dict[str, Any]:
    try:
        state = json.loads(_read(path))
    except ValueError:
        return {}
    return state if isinstance(state, dict) else {}


def _write_state(path: str, state: Dict[str, Any]) -> None:
    write(path, json.dumps(state) + "\n")


def _read(path: str) -> str:
    """Return a small file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_OUTPUT)
    except OSError:
        return ""


def _list(path: str) -> List[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


if __name__ == "__main__":
    # For the log of the unit.
    begun = time.monotonic()
    status = main()
    seconds = time.monotonic() - begun
    if seconds > 5:
        sys.stderr.write("The metrics took {:.0f} seconds.\n".format(seconds))
    raise SystemExit(status)
