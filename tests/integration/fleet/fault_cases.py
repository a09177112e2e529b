# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The faults of a node with one A10 of which each is to be the only root cause. Data.

The lines of the kernel and of nvidia-smi are those of its own words (sources: the known errors in
``_known_faults/rules/*.py``). In the name of a fault a dot divides variants of a row.
"""

from __future__ import annotations

import base64

from tests.integration.fleet.faults import PCI, Fault
from tests.unit.fixtures.health_node import FINE, recovery, smi_document, smi_gpu, xid
from tests.unit.fixtures.machines import nvidia
from tests.unit.fixtures.make_tree import config_space

GPU = "0000:00:07.0"
DEVICE = f"{PCI}/{GPU}"
LOADED = "580.95.05"
NEWER = "580.105.08"
_LIB = "/usr/lib/x86_64-linux-gnu"
_MODULES = '"/usr/lib/modules/$(uname -r)"'
_DKMS = "/var/lib/dkms/nvidia"


def _libraries(version: str) -> str:
    return (
        f": >{_LIB}/libnvidia-ml.so.{version}\n"
        f"ln -sf libnvidia-ml.so.{version} {_LIB}/libnvidia-ml.so.1\n"
    )


def _built(version: str, kernel: str) -> str:
    """Return what DKMS leaves of a module that it has installed for a kernel."""
    return (
        f"mkdir -p {_DKMS}/{version}/{kernel}/x86_64/module\n"
        f"ln -s {version}/{kernel}/x86_64 {_DKMS}/kernel-{kernel}-x86_64\n"
    )


# The driver is installed, and the kernel has not loaded it.
UNLOADED = f"mount -t tmpfs tmpfs /proc/driver\nrm -f {DEVICE}/driver\n{_libraries(LOADED)}"
# Nothing tells that the node is a container: its hiding of /.dockerenv is the test's.
MACHINE = """
printf 'PATH=/usr/bin\\0' >/etc/faults-environ
mount --bind /etc/faults-environ /proc/1/environ
if [ -e /run/systemd/container ]; then mount --bind /dev/null /run/systemd/container; fi
sed 's/^CapEff:.*/CapEff:\\t000001ffffffffff/' "/proc/$$/status" >/etc/faults-status
mount --bind /etc/faults-status "/proc/$$/status"
"""


def _driver(name: str) -> str:
    return f"ln -sfn ../../../bus/pci/drivers/{name} {DEVICE}/driver\n"


def _os(identity: str, version: str) -> str:
    text = f"ID={identity}\\nVERSION_ID={version}\\n"
    return f"rm -f /etc/os-release\nprintf '{text}' >/etc/os-release\n"


def _unloaded(row: str, *kernel: str, script: str = "", subject: str = "") -> Fault:
    return Fault(row, subject, UNLOADED + script, kernel)


def _values(row: str, kernel: tuple[str, ...] = (), **changed: str) -> Fault:
    """Return a fault that nvidia-smi shows of the GPU."""
    return Fault(row, GPU, kernel=kernel, smi=smi_document(smi_gpu(GPU, None, **changed)))


def _mode(row: str, subject: str = GPU, beside: str = "", **texts: str) -> Fault:
    """Return a fault of a value that FINE lacks."""
    document = smi_document(smi_gpu(GPU, {**FINE, **texts}))
    return Fault(row, subject, smi=document.replace("</gpu>", f"{beside}</gpu>"))


def _fails(row: str, status: int, text: str, *kernel: str, subject: str = "") -> Fault:
    """Return a fault with which nvidia-smi prints nothing else, however it is called."""
    return Fault(row, subject, kernel=kernel, smi=f"{text}\n", status=status, all_fail=True)


def _xid(row: str, number: int, text: str) -> Fault:
    return Fault(row, GPU, kernel=(xid(number, text, gpu=GPU),))


def _function(address: str, vendor: str, device: str, pci_class: str) -> str:
    """Return the lines that put a function on the bus."""
    place = f"{PCI}/{address}"
    rows = (("vendor", vendor), ("device", device), ("class", pci_class))
    written = "".join(f"echo {value} >{place}/{name}\n" for name, value in rows)
    return f"mkdir -p {place}\n{written}"


def _unit(name: str, state: str, journal: str = "") -> tuple[str, dict[str, str]]:
    """Return a script and programs with which a unit is in a state; systemd is not asked."""
    show = f"/^Id={name}.service/,/^$/"
    sets = f"s/^LoadState=.*/LoadState=loaded/;s/^ActiveState=.*/ActiveState={state}/"
    programs = {"systemctl": f"/usr/bin/systemctl \"$@\" | sed '{show}{{{sets}}}'"}
    if journal:
        says = f'case "$*" in\n*"--unit {name}"*) echo "{journal}" ;;\n*) echo "1.0 n kernel: -"'
        programs["journalctl"] = f"{says} ;;\nesac"
    return f"touch /etc/systemd/system/{name}.service\n", programs


def _service(row: str, name: str, state: str, script: str = "", journal: str = "") -> Fault:
    makes, programs = _unit(name, state, journal)
    return Fault(row, script=makes + script, programs=programs)


_SWITCHES = "".join(
    _function(f"0000:00:{slot}.0", "0x10de", "0x22a3", "0x068000") for slot in ("09", "0a", "0b")
)
_GUEST = base64.b64encode(
    config_space(nvidia(GPU, "2236", "1482", vgpu=("535.129.03", "r535_00")))
).decode()
# The specification is of another version of the driver.
_SPECIFICATION = (
    f"find /etc/cdi/ /run/cdi/ -name 'nvidia.*' -exec sed -i 's/{LOADED}/{{version}}/' {{{{}}}} +"
)
_PROFILES = ("1g.10gb", "3g.40gb")
_MIG_DEVICES = "".join(
    f"<mig_device><index>{number}</index><uuid>MIG-{number}</uuid></mig_device>"
    for number, _profile in enumerate(_PROFILES)
)
_MIG_LIST = f"GPU 0: NVIDIA A100 (UUID: GPU-{GPU})\n" + "\n".join(
    f"  MIG {profile}     Device  {number}: (UUID: MIG-{number})"
    for number, profile in enumerate(_PROFILES)
)
_MIG_DOCUMENT = smi_document(smi_gpu(GPU, current_mig="Enabled", pending_mig="Enabled")).replace(
    "</gpu>", f"<mig_devices>{_MIG_DEVICES}</mig_devices></gpu>"
)
LOST = (
    f"Unable to determine the device handle for GPU{GPU}: GPU is lost.  Reboot the system to "
    "recover this GPU"
)
MISMATCH = (
    "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.105"
)
NO_DEVICES = "No devices were found"
# The card is another vendor's, and its driver has not taken it.
_AMD = f"rm -f {DEVICE}/driver\n{_function(GPU, '0x1002', '0x74a1', '0x120000')}"
_INTEL = f"rm -f {DEVICE}/driver\n{_function(GPU, '0x8086', '0x56c0', '0x038000')}"
_UNKNOWN_ID = f"NVRM: The NVIDIA GPU {GPU} (PCI ID: 10de:2236)"

BUS = {
    "gpu-lost": Fault(
        "gpu_lost", GPU,
        script=f"head -c 256 /dev/zero | tr '\\0' '\\377' >{DEVICE}/config",
        kernel=(
            xid(79, "GPU has fallen off the bus.", gpu=GPU),
            f"NVRM: GPU {GPU}: GPU has fallen off the bus.",
        ),
        smi=f"{LOST}\n", status=15, all_fail=True,
    ),
    "bar-not-assigned": _unloaded(
        "bar_not_assigned",
        "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:",
        f"NVRM: BAR1 is 0M @ 0x0 (PCI:{GPU})",
        "NVRM: The NVIDIA probe routine failed for 1 device(s).",
        "NVRM: None of the NVIDIA devices were initialized.",
        # A container that may not load modules would be a second root.
        script=MACHINE,
    ),
    "power-cable": _fails("power_cable", 8, ""),
    # Only the number is known, no line of it.
    "power-cable.xid": _xid("power_cable", 54, ""),
    "bound-to-other-driver": _unloaded(
        "gpu_bound_to_other_driver",
        f"NVRM: GPU {GPU} is already bound to vfio-pci.",
        "NVRM: The NVIDIA probe routine was not called for 1 device(s).",
        script=_driver("vfio-pci"), subject=GPU,
    ),
    "legacy-gpu": Fault("legacy_gpu", script=f"echo 0x102d >{DEVICE}/device"),
    "unknown-gpu": Fault("unknown_gpu", script=f"echo 0x3fff >{DEVICE}/device"),
    "os-unsupported": Fault("os_unsupported", script=_os("centos", "7")),
    "packages-unreadable": Fault(
        "packages_unreadable", script=f"{_os('rocky', '9.4')}mkdir -p /usr/lib/sysimage/rpm",
        programs={"rpm": "echo 'error: rpmdb: BDB0113 Thread died' >&2\nexit 1"},
    ),
}  # fmt: skip

MODULE = {
    "vgpu-guest": _unloaded(
        "vgpu_guest_without_grid_driver",
        script=f"echo {_GUEST} | base64 -d >{DEVICE}/config",
    ),
    "grid-driver-on-whole-gpu": _unloaded(
        "grid_driver_on_whole_gpu", script="touch /usr/bin/nvidia-gridd"
    ),
    "gpu-unsupported": _unloaded(
        "gpu_unsupported",
        _UNKNOWN_ID,
        f"NVRM: installed in this system is not supported by the NVIDIA {LOADED} driver release.",
    ),
    "wrong-kernel-modules": _unloaded(
        "wrong_kernel_modules",
        _UNKNOWN_ID,
        "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
    ),
    "secure-boot": _unloaded(
        "secure_boot",
        "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
    ),
    "nouveau-loaded": _unloaded(
        "nouveau_loaded",
        f"nouveau {GPU}: NVIDIA GA102 (b72000a1)",
        script="mkdir -p /etc/faults-module/nouveau\n"
        f"mount --bind /etc/faults-module /sys/module\n{_driver('nouveau')}",
    ),
    "kernel-headers-missing": _unloaded(
        "kernel_headers_missing",
        script=f"{MACHINE}rm -rf {_MODULES}/build {_MODULES}/modules.dep\n"
        + _built(LOADED, "6.1.0-1-amd64"),
    ),
    "dkms-build-failed": _unloaded(
        "dkms_build_failed",
        script=f"rm -f {_MODULES}/modules.dep\nmkdir -p {_DKMS}/{LOADED}/build\n"
        f"printf 'DKMS make.log for nvidia-{LOADED} for kernel %s (x86_64)\\n%s\\n' "
        f"\"$(uname -r)\" \"nv.c:7:3: error: implicit declaration of function 'foo'\" "
        f">{_DKMS}/{LOADED}/build/make.log",
    ),
    "module-for-other-kernel": _unloaded(
        "module_for_other_kernel",
        "nvidia: version magic '6.1.0-40-amd64 SMP' should be '6.1.0-41-amd64 SMP'",
    ),
    "module-missing": _unloaded(
        "module_missing", script=f"{MACHINE}rm -f {_MODULES}/modules.dep"
    ),
    "modules-cannot-be-loaded": _unloaded("modules_cannot_be_loaded_here"),
    "upgraded-unattended": Fault(
        "upgraded_unattended",
        script=_libraries(NEWER)
        + "mkdir -p /var/log/apt\n"
        # An empty line divides the entries.
        'printf "\\nStart-Date: %s\\nCommandline: /usr/bin/unattended-upgrade\\nUpgrade: '
        f'libnvidia-compute-580:amd64 ({LOADED}, {NEWER})\\nEnd-Date: %s\\n" '
        '"$(date "+%Y-%m-%d  %T")" "$(date "+%Y-%m-%d  %T")" >>/var/log/apt/history.log',
        smi=f"{MISMATCH}\n", status=18, all_fail=True,
    ),
    "library-mismatch": Fault(
        "driver_library_mismatch", script=_libraries(NEWER),
        smi=f"{MISMATCH}\n", status=18, all_fail=True,
    ),
    "pending-reboot": Fault("pending_reboot", script=_built(NEWER, '"$(uname -r)"')),
    "gsp-firmware-failed": _fails(
        "gsp_firmware_failed", 6, NO_DEVICES,
        f"NVRM: GPU {GPU}: Cannot initialize GSP firmware RM", subject=GPU,
    ),
    "drm-driver-not-loaded": Fault("drm_driver_not_loaded", script=_AMD),
    "drm-firmware-missing": Fault(
        "drm_firmware_missing", GPU, _AMD,
        (f"amdgpu {GPU}: Direct firmware load for amdgpu/gc_9_4_3_rlc.bin failed with error -2",
         f"amdgpu {GPU}: amdgpu: Fatal error during GPU init"),
    ),
    "drm-firmware-failed": Fault(
        "drm_firmware_failed", GPU, _INTEL,
        (f"i915 {GPU}: [drm] *ERROR* GT0: GuC initialization failed -ENXIO",),
    ),
    "drm-gpu-not-supported": Fault(
        "drm_gpu_not_supported", GPU, _INTEL,
        (f"i915 {GPU}: Your graphics device 56c0 is not properly supported by i915 in this",),
    ),
    "drm-probe-failed": Fault(
        "drm_probe_failed", GPU, _AMD, (f"amdgpu {GPU}: amdgpu: Fatal error during GPU init",)
    ),
    "device-nodes-missing": Fault(
        "device_nodes_missing",
        script=f"mkdir -p /proc/driver/nvidia/gpus/{GPU}\n"
        f"echo 'Device Minor: \t 0' >/proc/driver/nvidia/gpus/{GPU}/information",
        smi="Failed to initialize NVML: Insufficient Permissions\n", status=4, all_fail=True,
    ),
    "no-module-for-next-kernel": Fault(
        "no_module_for_next_kernel",
        script=_built(LOADED, '"$(uname -r)"')
        + "mkdir -p /usr/lib/modules/99.1.0-1-amd64/kernel\n"
        ": >/usr/lib/modules/99.1.0-1-amd64/modules.dep",
    ),
}  # fmt: skip

HEALTH = {
    "fabric-manager-not-running": Fault("fabric_manager_not_running", script=_SWITCHES),
    "fabric-manager-version": _service(
        "fabric_manager_version", "nvidia-fabricmanager", "failed", _SWITCHES,
        f"fabric manager NVIDIA GPU driver interface version {NEWER} don't match with driver "
        f"version {LOADED}. Please update with matching NVIDIA driver package.",
    ),
    "imex-failed": _service("imex_failed", "nvidia-imex", "failed"),
    "fabric-not-ready": _mode("fabric_not_ready", **{"fabric/state": "In Progress"}),
    "fabric-degraded": _mode("fabric_degraded", **{"fabric/health/summary": "Unhealthy"}),
    "gpu-memory-error": _values(
        "gpu_memory_error",
        (
            xid(48, "DBE (double bit error) ECC Error", gpu=GPU),
            xid(63, "Row Remapper: New row marked for remapping", gpu=GPU),
            xid(94, "Contained ECC error", gpu=GPU, name="python"),
        ),
        **{"ecc_errors/volatile/dram_uncorrectable": "1", "remapped_row_pending": "Yes"},
    ),
    "gsp-timeout": _xid("gsp_timeout", 119, "Timeout after 6s of waiting for RPC response"),
    "nvlink-error": _xid("nvlink_error", 74, "NVLink: fatal error detected on link 14"),
    "nvlink-error.nvlink5": _xid("nvlink_error", 149, "NETIR_LINK_EVT Fatal   XC0 i0 Link 08"),
    "nvswitch-error": Fault(
        "nvswitch_error", "0000:c1:00.0",
        kernel=("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",),
    ),
    "nvswitch-event": Fault(
        "nvswitch_event", "0000:c1:00.0",
        kernel=("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 10004, Non-fatal, Host_thermal_event",),
    ),
    # Only the number is known, no line of it.
    "coherent-memory-error": _xid("coherent_memory_error", 159, ""),
    "row-remap-failed": _values(
        "row_remap_failed", (xid(64, "Row Remapper: Failed to remap row", gpu=GPU),),
        remapped_row_failure="Yes",
    ),
    "sram-threshold": _values("sram_threshold", sram_threshold_exceeded="Yes"),
    "inforom-corrupt": Fault(
        "inforom_corrupt", status=14,
        smi=f"{smi_document(smi_gpu(GPU))}WARNING: infoROM is corrupted at gpu {GPU}\n",
    ),
    "row-remap-pending": _values("row_remap_pending", remapped_row_pending="Yes"),
    "page-retirement-pending": _values("page_retirement_pending", pending_retirement="Yes"),
    "gpu-memory-contained": _xid("gpu_memory_contained", 94, "Contained: CE User Channel (0x9)."),
    "ecc-pending": _values("ecc_pending", pending_ecc="Disabled"),
    "mig-pending": _values("mig_pending", pending_mig="Enabled"),
    "mig-without-instances": _values(
        "mig_without_instances", current_mig="Enabled", pending_mig="Enabled"
    ),
    "mixed-mig-driver-bug": Fault(
        "mixed_mig_driver_bug",
        script=f"sed -i 's/{LOADED}/570.133.20/' /proc/driver/nvidia/version\n"
        + _SPECIFICATION.format(version="570.133.20"),
        programs={
            "nvidia-smi": f"cat <<'END'\n{_MIG_DOCUMENT}END".join(
                ('case "$*" in\n"-q -x")\n', f"\n;;\n*)\ncat <<'END'\n{_MIG_LIST}\nEND\n;;\nesac")
            ),
        },
    ),
    "compute-mode": _mode("compute_mode", compute_mode="Prohibited"),
    "persistence-off": _mode("persistence_off", "", persistence_mode="Disabled"),
    "hw-slowdown": _values(
        "hw_slowdown", clocks_event_reason_hw_power_brake_slowdown="Active"
    ),
    "pcie-width": Fault(
        "pcie_width", GPU,
        # As sysfs has it: the device's folder is in that of the bridge.
        script=f"""
bridge={PCI}/tree/0000:00:01.0
mkdir -p "$bridge"
cp -a {DEVICE} "$bridge/{GPU}"
rm -r {DEVICE}
ln -s tree/0000:00:01.0 {PCI}/0000:00:01.0
ln -s tree/0000:00:01.0/{GPU} {DEVICE}
for place in "$bridge" {DEVICE}; do echo 16 >"$place/max_link_width"; done
echo 8 >{DEVICE}/current_link_width""",
    ),
    "pcie-errors": Fault(
        "pcie_errors", GPU, script=f"echo 'TOTAL_ERR_FATAL 2' >{DEVICE}/aer_dev_fatal"
    ),
    "pcie-errors-nonfatal": Fault(
        "pcie_errors_nonfatal", GPU,
        script=f"echo 'TOTAL_ERR_NONFATAL 2' >{DEVICE}/aer_dev_nonfatal",
    ),
    "gpu-needs-reset": _xid("gpu_needs_reset", 62, "0000(0000) 00000000 00000000"),
    "xid": _xid("xid", 13, "Graphics SM Warp Exception on (GPC 0, TPC 0): Out Of Range Address"),
    "recovery-action": _values("recovery_action", gpu_recovery_action="Reset"),
    "recovery-action.reboot": Fault(
        "recovery_action", GPU, kernel=(recovery("Node Reboot Required", GPU),)
    ),
    "gpu-init-failed": _fails(
        "gpu_init_failed", 6, NO_DEVICES,
        f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x26:0xffff:1482)", subject=GPU,
    ),
    "xid-again": Fault(
        "xid_again", GPU, past=(xid(79, "GPU has fallen off the bus.", gpu=GPU),),
        kernel=(xid(79, "GPU has fallen off the bus.", gpu=GPU), recovery("None", GPU)),
    ),
    "xid-history": Fault(
        "xid_history", GPU, past=(xid(79, "GPU has fallen off the bus.", gpu=GPU),)
    ),
    "gpu-values-unreadable": _values("gpu_values_unreadable", fan_speed="ERR!"),
}  # fmt: skip

NVML = {
    "nvidia-smi-missing": Fault(
        "nvidia_smi_missing", script="mount --bind /dev/null /usr/bin/nvidia-smi"
    ),
    "nvml-failed": _fails(
        "nvml_failed", 4, "Failed to initialize NVML: Insufficient Permissions"
    ),
    "gpu-access-blocked": _fails(
        "gpu_access_blocked", 17,
        "Failed to initialize NVML: GPU access blocked by the operating system",
    ),
    "no-devices": _fails("no_devices", 6, NO_DEVICES),
    "gpu-missing-in-nvml": Fault("gpu_missing_in_nvml", GPU, smi=smi_document()),
    "driver-not-answering": _fails("driver_not_answering", 255, "something new"),
}  # fmt: skip

TOOLKIT = {
    "toolkit-missing": Fault(
        "toolkit_missing", script="rm /usr/bin/nvidia-container-runtime"
    ),
    "toolkit-broken": Fault(
        "toolkit_broken",
        script="printf '#!/bin/sh\\necho no config file >&2\\nexit 1\\n' "
        ">/usr/bin/nvidia-container-runtime",
    ),
    "toolkit-config-invalid": Fault(
        "toolkit_config_invalid",
        script="mkdir -p /etc/nvidia-container-runtime\n"
        "echo '[nvidia-container-cli' >>/etc/nvidia-container-runtime/config.toml",
    ),
    "cdi-missing": Fault(
        "cdi_missing",
        script="rm -f /etc/cdi/nvidia.* /run/cdi/nvidia.*\nmkdir -p /etc/nvidia-container-runtime\n"
        "printf '[nvidia-container-runtime]\\nmode = \"cdi\"\\n' "
        ">/etc/nvidia-container-runtime/config.toml",
    ),
    "cdi-stale": Fault(
        "cdi_stale",
        script=_SPECIFICATION.format(version=NEWER),
    ),
    "cdi-invalid": Fault(
        "cdi_invalid",
        programs={"nvidia-ctk": "echo 'INFO[0000] Found 0 CDI devices' >&2"},
    ),
}  # fmt: skip

_K3S = "/var/lib/rancher/k3s"

RUNTIME = {
    "docker-config-invalid": Fault(
        "docker_config_invalid", script="mkdir -p /etc/docker\necho '{' >/etc/docker/daemon.json"
    ),
    "containerd-config-invalid": Fault(
        "containerd_config_invalid", script="echo '[plugins' >>/etc/containerd/config.toml"
    ),
    "restart-required": Fault(
        "restart_required", script="touch /etc/containerd/config.toml"
    ),
    "not-default": Fault("not_default", variables={"require_default": ["containerd"]}),
    # Beside a containerd that Kubernetes can use, a Docker that does not run is no fault.
    "docker-not-running": _service(
        "docker_not_running", "docker", "inactive",
        "rm -f /usr/bin/containerd /usr/local/bin/containerd\n",
    ),
    # Its containerd stands in for that of k3s, which reads the template of version 3.
    "k3s-template-other-version": _service(
        "k3s_template_other_version", "k3s", "active",
        f"mount -t tmpfs tmpfs /var/lib/rancher\n"
        f"mkdir -p {_K3S}/agent/etc/containerd {_K3S}/data/current/bin\n"
        f"ln -s /usr/bin/containerd {_K3S}/data/current/bin/containerd\n"
        f"printf '#!/bin/sh\\nexec /usr/bin/ctr plugins ls\\n' >{_K3S}/data/current/bin/ctr\n"
        f"chmod 755 {_K3S}/data/current/bin/ctr\n"
        f"echo 'version = 3' >{_K3S}/agent/etc/containerd/config.toml\n"
        "echo '[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia]' "
        f">{_K3S}/agent/etc/containerd/config.toml.tmpl\n",
    ),
}  # fmt: skip

FAULTS: dict[str, Fault] = {**BUS, **MODULE, **HEALTH, **NVML, **TOOLKIT, **RUNTIME}
