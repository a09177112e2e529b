# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_mig
short_description: Partition NVIDIA GPUs with MIG
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Sets MIG mode and GPU instances of the GPUs of a node as a configuration says, in the schema of
    NVIDIA's mig-parted or by the name of a built-in configuration.
  - GPU instances that fit the configuration remain where they are. Other GPUs are not touched, and
    only a GPU whose mode changes is reset.
  - Reads mode and instances again after each command, because C(nvidia-smi) reports failures as
    warnings. If a command fails, the earlier layout of all GPUs is restored.
  - Refuses before any change if a card cannot do MIG, its driver is too old, the instances do not
    fit (with the nearest layout that does), or a program uses what would change.
  - Writes a unit that recreates the layout at each boot, because instances vanish with a reboot,
    and from Hopper on the mode with the kernel module.
options:
  state:
    description:
      - V(absent) restores mode and instances found before the first change, and removes the unit.
      - It refuses, before any change, as long as a GPU of the record is in use, or is on the PCI
        bus and the driver does not show it or its layout. The record is kept for a later run.
      - A GPU of the record that is not in the machine any more is dropped from it, with a warning.
    type: str
    choices: [present, absent]
    default: present
  config:
    description:
      - The configuration, a name in O(configs) or a built-in one; empty changes nothing.
      - V(all-disabled) disables MIG. V(all-enabled) enables it without instances. V(all-balanced)
        makes instances of 1, 1, 2 and 3 slices (1, 1 and 2 on cards with four). V(all-<profile>),
        such as V(all-1g.10gb) or V(all-1g.24gb-me), makes as many of one profile as the card has.
      - Built-in configurations skip GPUs without MIG. A node without any GPU with MIG is refused,
        but for V(all-disabled).
    type: str
    default: ""
  configs:
    description:
      - Configurations by name in mig-parted's schema, or the content of a file of mig-parted.
      - Profiles of compute instances (such as V(1c.3g.20gb)) are refused.
    type: dict
    default: {}
    suboptions:
      NAME:
        description: >-
          The name of a configuration, for O(config). Of the entries for a GPU the last one counts.
        type: list
        elements: dict
        suboptions:
          devices:
            description: V(all), or a list of numbers as C(nvidia-smi) shows them.
            type: raw
          device-filter:
            description: >-
              Device and vendor IDs as in C(0x20B010DE), one or a list. Other GPUs are skipped.
            type: raw
          mig-enabled:
            description: Whether MIG is enabled.
            type: bool
          mig-devices:
            description: Numbers of instances by profile, such as C(1g.10gb).
            type: dict
  reset:
    description: Whether a GPU may be reset whose mode is pending (Ampere). Otherwise a reboot is
      needed.
    type: bool
    default: true
  services:
    description: Units, without C(.service), that are stopped during the change if they hold a GPU
      that changes, and started again, with those of them that systemd stops for it. The timer of
      M(kubegpu.nodes.gpu_exporter) that asks C(nvidia-smi) is stopped in any case.
    type: list
    elements: str
    default:
      - nvidia-persistenced
      - nvsm
      - nvidia-dcgm
      - nvidia-dcgm-exporter
      - dcgm-exporter
      - kubegpu-dcgm-exporter
  at_boot:
    description: Whether C(kubegpu-mig.service) makes the layout at boot, before kubelet and the
      container runtimes.
    type: bool
    default: true
  beside_others:
    description: Change the node although NVIDIA's MIG manager is enabled on it.
    type: bool
    default: false
  leaving:
    description:
      - Containers, by their IDs, that have ended before this module changes the node, such as
        RV(kubegpu.nodes.node_pause#module:nodes) returns them in C(containers).
      - In check mode they still run, and do not count as users of a GPU. Otherwise this option
        has no effect.
    type: list
    elements: str
    default: []
  pods:
    description:
      - Pods of a cluster that use GPUs of the node, as RV(kubegpu.nodes.node_pause#module:nodes)
        has them in C(pods). A change that interrupts them (a mode changes, or an instance is
        destroyed) is refused, with their names.
    type: list
    elements: str
    default: []
  node_name:
    description: The name of the node in that cluster, for the refusal.
    type: str
    default: ""
  timeout:
    description: Seconds for each command of C(nvidia-smi).
    type: int
    default: 300
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
requirements:
  - Root on the node (C(become)), and a driver that answers.
notes:
  - A process is found to use an instance by the device files it has open. A process in a container
    without its own device files cannot be told from one that only watches the GPU.
  - The module never reboots. RV(reboot_required) is V(true) in each run until the reboot.
seealso:
  - module: kubegpu.nodes.gpu_node_facts
  - module: kubegpu.nodes.node_pause
  - plugin: kubegpu.nodes.gpu_plan
    plugin_type: filter
  - name: MIG
    description: Cards, refusals, Kubernetes, and what happens at boot.
    link: https://kubegpu.example/nodes/blob/main/docs/mig.md
  - name: NVIDIA Multi-Instance GPU User Guide
    description: Profiles and placements of each card.
    link: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
"""

EXAMPLES = r"""
- name: Make as many instances of one profile as each card has
  kubegpu.nodes.nvidia_mig:
    config: all-1g.10gb
  register: mig

# Where the mode of a card takes effect with the next boot only.
- name: Reboot if the mode of a GPU is pending
  ansible.builtin.reboot:
  when: mig.reboot_required

- name: Make the instances after the reboot
  kubegpu.nodes.nvidia_mig:
    config: all-1g.10gb
  when: mig.reboot_required

- name: Divide the first GPU, and leave the others whole
  kubegpu.nodes.nvidia_mig:
    config: first
    configs:
      first:
        - devices: all
          mig-enabled: false
        - devices: [0]
          mig-enabled: true
          mig-devices:
            1g.10gb: 2
            2g.20gb: 1
            3g.40gb: 1

- name: Use a file of mig-parted
  kubegpu.nodes.nvidia_mig:
    config: training
    configs: "{{ lookup('ansible.builtin.file', 'mig-parted.yml') | from_yaml }}"

# Instances vanish with a reboot; another tool recreates them, or nobody does.
- name: Partition until the next boot, without a unit that recreates the layout
  kubegpu.nodes.nvidia_mig:
    config: all-balanced
    at_boot: false

- name: Partition a node of a cluster
  block:
    - name: Keep new pods away, and wait until the device plugin has left
      kubegpu.nodes.node_pause:
        kubeconfig: /home/ops/.kube/config
        nodes:
          gpu1.example.com: {}
        reason: mig
        allow_pods: true
      delegate_to: localhost
      become: false
      register: paused

    # Refused if pods on the node use GPUs that change.
    - name: Partition it
      kubegpu.nodes.nvidia_mig:
        config: all-balanced
        leaving: "{{ paused.nodes['gpu1.example.com'].containers }}"
        pods: "{{ paused.nodes['gpu1.example.com'].pods }}"
        node_name: gpu1.example.com
  always:
    - name: End the pause
      kubegpu.nodes.node_pause:
        kubeconfig: /home/ops/.kube/config
        nodes:
          gpu1.example.com: {}
        reason: mig
        state: absent
      delegate_to: localhost
      become: false

- name: Disable MIG on all GPUs
  kubegpu.nodes.nvidia_mig:
    config: all-disabled

- name: Restore the layout before the first change
  kubegpu.nodes.nvidia_mig:
    state: absent
"""

RETURN = r"""
plan:
  description: The changes and their reasons, as returned by the filter
    P(kubegpu.nodes.gpu_plan#filter).
  returned: success
  type: dict
  sample:
    action: change
    change: true
    devices:
      - index: 0
        address: "0000:3b:00.0"
        uuid: GPU-3b5c8d1e-0000-0000-0000-000000000000
        mode: enable
        destroy: []
        create: ["3g.40gb:0", "3g.40gb:4"]
        keep: []
        before: MIG disabled
        after: 2x 3g.40gb at 0 and 4
        reboot_reason: ""
reboot_required:
  description: Whether the mode of a GPU takes effect with the next boot only.
  returned: success
  type: bool
  sample: false
reboot_reason:
  description: The GPUs that need the reboot; empty if none does.
  returned: success
  type: str
  sample: MIG of GPU 0 is enabled with the next boot
diff:
  description: Instances of each GPU, and the files for the boot, before and after.
  returned: with diff mode
  type: list
  elements: dict
  sample:
    - before: "MIG disabled\n"
      after: "3g.40gb at 0\n3g.40gb at 4\n"
      before_header: MIG of GPU 0 (0000:3b:00.0)
      after_header: MIG of GPU 0 (0000:3b:00.0)
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
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import gather
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import RuntimePaths
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.apply import (
    Dependencies,
    absent,
    present,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.options import (
    MODULE_ARGUMENTS,
    read_options,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.types import Pods
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.options import STATE_ARGUMENTS
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            **MODULE_ARGUMENTS,
            "leaving": {"type": "list", "elements": "str", "default": []},
            "pods": {"type": "list", "elements": "str", "default": []},
            "node_name": {"type": "str", "default": ""},
            "timeout": {"type": "int", "default": 300},
            **STATE_ARGUMENTS,
        },
        supports_check_mode=True,
    )
    state_path = module.params["state_path"]
    try:
        run = module_runner(module)
        reader = NodeReader("/", run)
        node = Dependencies(
            run=run,
            reader=reader,
            store=StateStore(state_path),
            facts=lambda: gather(reader, RuntimePaths(), state_path),
            timeout=module.params["timeout"],
            warn=module.warn,
            leaving=module.params["leaving"],
            pods=Pods(module.params["node_name"], tuple(module.params["pods"])),
        )
        act = present if module.params["state"] == "present" else absent
        result = act(read_options(module.params), node, module.check_mode)
    except KubegpuError as error:
        fail(module, error)
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
