#!/usr/bin/python
# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_node_health
short_description: Read the health of a node's GPUs and judge it
version_added: 0.1.0
description:
  - Calls C(nvidia-smi -q -x) once, and reads sysfs and the kernel's log of the last boots. Returns
    memory errors, rows and pages out of use, temperature, slowed clocks, PCI Express links, the
    NVLink fabric, and the Xids and SXids of each GPU and NVSwitch with count, first and last time.
  - Judges what is read. A finding has a severity, the PCI address, cause, evidence and next step.
    Errors of the present boot are faults; those of earlier boots, or before a reset of the GPU,
    are history.
  - A driver that hangs is reported when O(timeout) is over. C(nvidia-smi) is killed, and no second
    one is started.
  - With O(baseline), an earlier result, returns what is new since then, and what is resolved.
  - For GPUs of AMD and Intel, reads links, errors on PCI Express, memory errors (C(amdgpu)),
    temperature, and messages of their kernel drivers.
  - Changes nothing. Command lines of processes, which C(nvidia-smi) prints, are not returned.
author:
  - kubegpu.nodes contributors (@kubegpu)
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.driver_hang
attributes:
  check_mode:
    description: Reads the same as without check mode.
    support: full
  diff_mode:
    description: The module changes nothing.
    support: none
options:
  timeout:
    description:
      - Seconds that C(nvidia-smi) may take, and that all logs together may take.
      - With eight GPUs and without the persistence daemon, C(nvidia-smi) can take a minute.
    type: int
    default: 60
  boots:
    description:
      - Number of boots whose kernel log is read, the present one first; 20 at most.
      - Earlier boots need a persistent journal.
    type: int
    default: 3
  thresholds:
    description:
      - Numbers from which on a value is a finding, instead of the built-in ones. V(null) switches
        a threshold off.
      - The highest numbers without a finding are C(ecc_uncorrected) (0, since the last reset),
        C(ecc_dram_corrected) (20000000), C(ecc_sram_corrected) (10000), C(remapped_rows) (512),
        C(banks_without_spares) (0), C(retired_pages) (9), C(pcie_fatal) (0), C(pcie_nonfatal) (0)
        and C(pcie_correctable) (V(null)). The lowest one is C(temperature_margin) (1), in degrees
        below the temperature at which the GPU slows down.
    type: dict
    default: {}
  xids:
    description:
      - What Xids mean, by number, instead of the built-in table.
      - A value is a severity (V(error), V(warning) or V(info)), or a mapping with C(severity),
        C(action) and C(meaning).
    type: dict
    default: {}
  baseline:
    description:
      - An earlier result of this module, as it was registered. GPUs that are missing since then are
        findings, and RV(new) and RV(resolved) are returned.
    type: dict
    default: {}
seealso:
  - module: kubegpu.nodes.gpu_node_verify
  - module: kubegpu.nodes.gpu_node_facts
  - name: NVIDIA's Xid catalogue
    description: The meaning of each Xid, and what to do.
    link: https://docs.nvidia.com/deploy/xid-errors/
notes:
  - Needs no root. Without it, or without membership in C(systemd-journal) or C(adm), the kernel's
    log may not be readable, which RV(unseen) says.
  - C(nvidia-smi) is not called if the driver is not loaded, because it would load it.
  - Needs nothing on the node but C(nvidia-smi), and C(journalctl) or C(dmesg).
"""

EXAMPLES = r"""
- name: Read the health
  kubegpu.nodes.gpu_node_health:
  become: true
  register: health

- name: Stop if a GPU is faulty
  ansible.builtin.assert:
    that: health.ok
    fail_msg: >-
      {{ health.findings | selectattr('severity', 'eq', 'error') | map(attribute='cause') }}

- name: Read it again after maintenance
  kubegpu.nodes.gpu_node_health:
    baseline: "{{ health }}"
  become: true
  register: after

- name: Stop if there is anything new, information aside
  ansible.builtin.assert:
    that: after.new | rejectattr('severity', 'eq', 'info') | length == 0

- name: Take recorded bad rows as errors, and do not judge corrected errors
  kubegpu.nodes.gpu_node_health:
    xids:
      63: error
    thresholds:
      ecc_dram_corrected:
      ecc_sram_corrected:
"""

RETURN = r"""
ok:
  description: Whether there is no finding with the severity C(error).
  returned: success
  type: bool
  sample: false
findings:
  description:
    - What is wrong, the worst first.
    - C(severity) is C(error) (the GPU needs help), C(warning) or C(info). C(address) is the PCI
      address of the GPU or NVSwitch, or empty for the node. C(xids) are the Xids that it is about.
      C(count) is what is counted since boot, and C(null) for a state. C(last) is the time of the
      last event in UTC.
  returned: success
  type: list
  elements: dict
  sample:
    - code: gpu_lost
      severity: error
      address: "0000:05:00.0"
      cause: A GPU does not answer on the bus any more.
      evidence: >-
        once, 2026-11-23T14:02:11+00:00: NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>',
        name=<unknown>, GPU has fallen off the bus.
      next_step: >-
        Drain the node and power it off and on. If it comes again: seat, power and cooling of the
        card, then the card itself.
      xids: [79]
      count: 1
      last: "2026-11-23T14:02:11+00:00"
new:
  description: The findings that the baseline does not have, or that occurred again after it;
    C(null) without O(baseline).
  returned: success
  type: list
  elements: dict
  sample: []
resolved:
  description: The findings of the baseline that are gone; C(null) without O(baseline), or if
    C(nvidia-smi) or the kernel's log could not be read.
  returned: success
  type: list
  elements: dict
  sample:
    - code: row_remap_pending
      severity: warning
      address: "0000:3b:00.0"
gpus:
  description:
    - The GPUs on the PCI bus. A value is C(null) if it is not known. Which values there are
      depends on card and driver.
    - C(link) has lanes and speed of the GPU's own link, C(aer) the errors on it since boot, C(ras)
      the memory errors that C(amdgpu) counts.
    - C(recovery), C(ecc), C(remapped_rows), C(retired_pages), C(temperature) (in degrees Celsius),
      C(clocks), C(mig) and C(fabric) are those of C(nvidia-smi), if it told them.
    - C(licence) (license) has C(product), C(status), C(state) and C(expiry) of a virtual GPU, as
      C(vgpu.licence) of M(kubegpu.nodes.gpu_node_facts). All are V(null) for a whole GPU.
  returned: success
  type: list
  elements: dict
  sample:
    - address: "0000:3b:00.0"
      vendor: nvidia
      product: NVIDIA A100 80GB PCIe
      kernel_driver: nvidia
      index: 0
      uuid: GPU-3b5c8d1e-0000-0000-0000-000000000000
      serial: "1650522003820"
      on_bus: true
      link: {width: 16, width_max: 16, speed: 16.0 GT/s PCIe, speed_max: 16.0 GT/s PCIe}
      aer: {correctable: 0, nonfatal: 0, fatal: 0}
      remapped_rows:
        {corrected: 0, uncorrected: 1, pending: true, failed: false, banks_without_spares: 0}
events:
  description:
    - Equal lines of the kernel's log, counted by boot, device and number. C(boot) is 0 for the
      present one, -1 for the one before.
    - C(kind) is C(xid), C(sxid), C(driver) (other lines of NVIDIA's driver), C(mismatch) (a program
      with libraries of another version), C(kernel_driver) (of AMD and Intel) or C(hung_task).
    - C(programs) has at most eight names of programs, without arguments. C(sample) is the latest
      line.
  returned: success
  type: list
  elements: dict
  sample:
    - boot: 0
      kind: xid
      number: 31
      address: "0000:3b:00.0"
      severity: info
      count: 12
      first: "2026-11-23T09:00:00+00:00"
      last: "2026-11-23T09:12:31+00:00"
      sample: "NVRM: Xid (PCI:0000:3b:00): 31, pid=7194, name=python, Ch 00000008, MMU Fault"
      programs: [python]
      mig_instances: []
      versions: []
hangs:
  description:
    - The C(nvidia-smi) that did not end in time. C(state) is its state in the kernel (C(D) cannot
      be interrupted), C(wchan) where it waits there, C(left) whether it is still there after
      SIGKILL.
    - C(seconds) is 0 for a process that an earlier run has left.
  returned: success
  type: list
  elements: dict
  sample:
    - {program: nvidia-smi, pid: 4242, seconds: 60.0, state: D, wchan: rm_ioctl, left: true}
unseen:
  description: What could not be read, and why.
  returned: success
  type: list
  elements: dict
  sample:
    - what: kernel log
      why: >-
        journalctl: it printed nothing; dmesg: dmesg: read kernel buffer failed: Operation not
        permitted
logs:
  description:
    - How much of the kernel's log of each boot was read, in bytes and seconds. C(incomplete) says
      why not all of it was read; the newest lines are read first.
  returned: success
  type: list
  elements: dict
  sample:
    - {boot: 0, source: journalctl, size: 185220, seconds: 0.1, incomplete: ""}
driver_version:
  description: Version of the loaded driver of NVIDIA; C(null) if none is loaded.
  returned: success
  type: str
  sample: 580.95.05
boot_id:
  description: ID of the present boot, by which a baseline is compared.
  returned: success
  type: str
  sample: 3d2c7b1e-7d54-4f0a-9a53-2a0d8f8f1c11
seconds:
  description: Seconds that everything took.
  returned: success
  type: float
  sample: 1.3
cause:
  description: What is wrong, with the name of the file, option or package.
  returned: failure
  type: str
evidence:
  description: What shows it, such as a line of a log; may be empty.
  returned: failure
  type: str
next_step:
  description: What you can do; may be empty.
  returned: failure
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._health.health import check_health
from ansible_collections.kubegpu.nodes.plugins.module_utils._health.options import (
    ARGUMENTS,
    read_options,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import module_stream
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.signals import (
    Interrupted,
    raise_on_signals,
)


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    raise_on_signals()
    try:
        request = read_options(module.params)
        result = check_health(NodeReader("/"), module_stream(module), request)
    except KubegpuError as error:
        fail(module, error)
    except Interrupted as interrupted:
        cause = f"Stopped by {interrupted} before all was read; what was started is ended."
        fail(module, KubegpuError(cause, next_step="Run again."))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
