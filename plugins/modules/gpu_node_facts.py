#!/usr/bin/python
# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_node_facts
short_description: Returns everything about a node that GPU work is decided on
version_added: 0.1.0
description:
  - Finds the GPUs of a node by their PCI functions and returns them as the fact C(gpu_node), with
    what is there of driver, CUDA, container toolkit, package repositories and container runtimes.
  - Needs no driver, no C(lspci) and no Python library on the node, and changes nothing.
  - Never fails because something is absent. A value is V(null) where it is not there, or where the
    user may not look; with C(become) it sees all.
  - On a node without a GPU of these no daemon is asked and no program of theirs is started, as
    nothing is decided on what they would say. C(driver.services) and, of C(runtimes), C(active),
    C(started), C(containers_running), what C(containerd config dump) tells and a C(version) that
    no package tells are V(null) there.
  - GPUs of NVIDIA, AMD and Intel are returned. Graphics inside a processor, management chips and
    audio, USB and bridge functions are not.
author:
  - kubegpu.nodes contributors (@kubegpu)
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
attributes:
  diff_mode:
    description: There is nothing to compare, as nothing is changed.
    support: none
  facts:
    description: Returns an C(ansible_facts) dictionary.
    support: full
options:
  root:
    description:
      - The directory below which everything is read.
      - With another one than V(/) only files below it are read, and no command is run. This is for
        looking at an image, a rescue mount or a tree made for a test.
    type: path
    default: /
  containerd_config_path:
    description: Configuration file of a plain containerd.
    type: path
    default: /etc/containerd/config.toml
  docker_config_path:
    description: Configuration file of Docker.
    type: path
    default: /etc/docker/daemon.json
seealso:
  - module: kubegpu.nodes.containerd_runtime
  - module: kubegpu.nodes.docker_runtime
notes:
  - Works as a facts module, with C(ansible_facts_modules) or in C(facts_modules).
  - The devices are asked by the Python library C(pynvml) where the node has it, else by
    C(nvidia-smi) where the node has that.
"""

EXAMPLES = r"""
- name: Find the GPUs
  kubegpu.nodes.gpu_node_facts:
  become: true

- name: Show them
  ansible.builtin.debug:
    msg: "{{ ansible_facts['gpu_node']['gpus'] | map(attribute='product') }}"

- name: Look at a mounted image
  kubegpu.nodes.gpu_node_facts:
    root: /mnt
"""

RETURN = r"""
ansible_facts:
  description: The facts.
  returned: always
  type: dict
  contains:
    gpu_node:
      description: What the node is and has. Every key is always there.
      returned: always
      type: dict
      contains:
        os:
          description:
            - C(family) (V(debian), V(rhel), V(suse)), C(id), C(version), C(codename), C(arch),
              C(kernel), C(package_manager), C(hostname), C(fqdn) and C(machine_id).
            - C(archive) is apt's entry for the distribution's own archive, with C(file), C(uri),
              C(suites), C(components) and C(signed_by) (a path, V(null) where apt's default keys
              serve); V(null) where there is none. Entries that this collection wrote are left out.
            - C(fqdn) comes from the host's own files; no name server is asked.
          returned: always
          type: dict
          sample:
            family: debian
            id: debian
            version: "12"
            codename: bookworm
            archive:
              file: /etc/apt/sources.list.d/debian.sources
              uri: http://deb.debian.org/debian
              suites: [bookworm, bookworm-updates]
              components: [main]
              signed_by: /usr/share/keyrings/debian-archive-keyring.gpg
            arch: x86_64
            kernel: 6.1.0-37-amd64
            package_manager: apt
            hostname: gpu1
            fqdn: gpu1.example.com
            machine_id: 2d9ad6e6ed1c4bd1b4f1f1bb2e4bbd2d
        python:
          description: >-
            Versions of the node's Python and of the libraries C(tomlkit) and C(pynvml); an empty
            string where a library does not say its version.
          returned: always
          type: dict
          sample: {version: 3.11.2, tomlkit: null, pynvml: null}
        gpus:
          description:
            - The GPUs in PCI order. Ids are four lower-case hexadecimal digits.
            - C(generation) is one of V(kepler), V(maxwell), V(pascal), V(volta), V(turing),
              V(ampere), V(hopper), V(ada), V(blackwell), V(rubin) and V(unknown) for NVIDIA, and
              the vendor's own name for others.
            - C(virtual_function) is V(true) for an SR-IOV function of a card on its host.
            - C(vgpu.guest) is V(true) for a virtual GPU given to this machine, with version and
              branch of the host's driver; V(null) where only root can tell.
          returned: always
          type: list
          elements: dict
          sample:
            - address: "0000:3b:00.0"
              vendor: nvidia
              vendor_id: 10de
              device_id: "1eb8"
              subsystem_vendor_id: 10de
              subsystem_device_id: 12a2
              class: "0302"
              generation: turing
              product: Tesla T4
              kernel_driver: nvidia
              virtual_function: false
              vgpu: {guest: false, host_driver_version: null, host_driver_branch: null}
        nvswitches:
          description: How many NVSwitch chips the node has on its PCI bus.
          returned: always
          type: int
          sample: 0
        nvswitch_bridges:
          description:
            - How many bridges to NVSwitches the node has, for GPUs (HGX B200, B300) whose
              NVSwitches are not on its own PCI bus; V(0) for others, V(null) where that cannot be
              told without root.
          returned: always
          type: int
          sample: 0
        driver:
          description:
            - C(loaded) is the version of the kernel module that is loaded, C(installed) the one on
              disk, C(userland) that of the libraries. C(kernel_module) is V(open) or
              V(proprietary). C(source) is V(distro), V(nvidia), V(runfile) or V(null).
            - C(packages) maps names to versions. C(dkms) lists C(kernel), C(version) and C(state)
              (V(added), V(built), V(installed), V(failed)). C(held) is whether all packages are,
              C(unheld) are the names of those that are not.
            - C(coherent_memory) is what the loaded module was told of the memory of GPUs on a board
              with a Grace CPU, V(driver) or V(numa); empty is the driver's own default, V(null)
              where no module is loaded that has such an option.
            - C(streams) maps the modules of dnf 4 that have a stream enabled to that stream,
              V(null) where that may not be read. It is empty with every other package manager.
            - C(pending_reboot) is V(true) where another version is installed than is loaded.
            - C(services) maps units to their state.
            - C(configuration) maps those files that M(kubegpu.nodes.nvidia_driver) may write and
              that are there to their SHA-256, V(null) where a file may not be read.
            - C(managed) is whether the node's record says that this collection installed the
              driver, V(null) where it may not be read. C(pending) is
              what a change of it does that was begun and not finished (V(install), V(upgrade),
              V(downgrade), V(remove), V(configure)), empty where there is none. C(previous) is
              the driver that this one replaced (C(version), C(branch), C(source),
              C(kernel_module)), from the same record.
              C(recorded_files) are the configuration files that it has written, V(null) where the
              record may not be read.
            - C(uninstaller) is the path of the runfile's own uninstaller.
          returned: always
          type: dict
          sample:
            loaded: 580.126.09
            installed: 580.126.09
            userland: 580.126.09
            kernel_module: open
            coherent_memory: ""
            source: nvidia
            packages: {nvidia-open-580: 580.126.09-1}
            dkms: [{kernel: 6.1.0-37-amd64, version: 580.126.09, state: installed}]
            held: true
            unheld: []
            streams: {}
            pending_reboot: false
            services: {nvidia-persistenced: active, nvidia-fabricmanager: null}
            configuration: {}
            managed: true
            pending: ""
            previous: {version: 535.309.01, branch: "535", source: distro, kernel_module: open}
            recorded_files: []
            uninstaller: null
        secure_boot:
          description: Whether Secure Boot is on.
          returned: always
          type: bool
          sample: false
        nouveau:
          description: >-
            Whether one of the kernel's own drivers for NVIDIA GPUs (nouveau, nova) is C(loaded),
            whether it is C(blocked), and the C(modules) that are loaded.
          returned: always
          type: dict
          sample: {loaded: false, blocked: true, modules: []}
        kernels:
          description: >-
            The kernels that have modules, and the running one: C(version), C(running), whether
            it is C(on_disk) (a container's is not), whether its C(headers) are there, and the
            version of the NVIDIA C(driver) module that is installed for it (V(unknown) where it is
            compressed, V(null) where there is none).
          returned: always
          type: list
          elements: dict
          sample:
            - version: 6.1.0-37-amd64
              running: true
              on_disk: true
              headers: true
              driver: 580.126.09
        cuda:
          description:
            - CUDA C(toolkits) with C(version), C(path), C(default), C(source) (V(package) of
              NVIDIA, V(runfile), V(distro) or V(null)) and the path of a runfile's own
              C(uninstaller). All lie below C(/usr/local) but that of the distribution, in C(/usr).
            - C(driver_supports) is the newest CUDA that the loaded driver itself says it supports.
            - C(packages) maps toolkits, cuDNN and NCCL to versions; C(held) is whether all are,
              C(unheld) are the names of those that are not.
            - C(configuration) maps those files that this collection may write for CUDA and that
              are there to their SHA-256. C(compiler) is always V(null).
          returned: always
          type: dict
          sample:
            toolkits:
              - version: 12.8.1
                path: /usr/local/cuda-12.8
                default: true
                source: package
                uninstaller: null
            driver_supports: "13.0"
            packages: {cuda-toolkit-12-8: 12.8.1-1}
            held: true
            unheld: []
            configuration: {}
            compiler: null
        container_toolkit:
          description:
            - C(version) and C(packages) of NVIDIA's container toolkit, whether all are C(held),
              the CDI specification (C(cdi_spec.path), C(cdi_spec.driver_version)), the settings
              of its configuration file (C(config), keys as in C(section.key)), and the packages
              that it replaces (C(obsolete_packages)).
          returned: always
          type: dict
          sample:
            version: 1.20.0-1
            packages: {nvidia-container-toolkit: 1.20.0-1}
            held: true
            cdi_spec: {path: /var/run/cdi/nvidia.yaml, driver_version: 580.126.09}
            config: {nvidia-container-runtime.mode: auto}
            obsolete_packages: {}
        repositories:
          description:
            - Package sources of NVIDIA, AMD and Intel, and those that this collection wrote, one
              entry for each address. Credentials are taken out.
            - C(key_fingerprint) is the fingerprint of the one key that the entry trusts, V(null)
              where there is none, or several (C(key_fingerprints) has all).
          returned: always
          type: list
          elements: dict
          sample:
            - file: /etc/apt/sources.list.d/nvidia-container-toolkit.list
              uri: https://nvidia.github.io/libnvidia-container/stable/deb/amd64
              key_fingerprint: C95B321B61E88C1809C4F759DDCAE044F796ECB0
              key_fingerprints: [C95B321B61E88C1809C4F759DDCAE044F796ECB0]
              signed_by: /usr/share/keyrings/nvidia-container-toolkit-keyring.gpg
              enabled: true
        runtimes:
          description:
            - C(containerd), C(docker) and C(crio); V(null) for one that is not there.
            - C(containerd) has C(version), C(flavour), C(config_path), C(config_version) (of the
              file itself), C(unit), C(active), C(control_plane) (whether a restart of that unit
              takes a member of the control plane with it), C(handlers) (C(type), C(path),
              C(options)), C(default_handler), C(cri_enabled) and C(cdi_enabled) (whether CDI is on
              in CRI; V(null) where it has no such setting), the last four as containerd understands
              its files. It is not queried again while C(converged) has a fingerprint
              and its report would be the same.
            - C(docker) has C(version), C(config_path), C(unit), C(active), C(runtimes) (C(path),
              C(args), C(type)), C(default_runtime), C(live_restore) and C(containers_running); of
              the running daemon where it answers, else of the file.
            - C(crio) has C(version), C(config_path), C(drop_in_path), C(unit), C(active), and what
              its files say, C(runtimes) (C(type), C(path), C(file), and whether it is C(outdated),
              a handler of ours that lacks what the node's own runtime has now),
              C(default_runtime), C(default_file), C(own_runtime) (C(name) and C(path) of the one
              from which a handler inherits) and C(restart_required), whether one of them changed
              after the running CRI-O started.
            - Each has C(started) too, when its unit's main process was started, in UTC.
            - C(converged) of C(containerd) and C(docker) has, by the handler's name, the
              fingerprint of the settings for which M(kubegpu.nodes.containerd_runtime) or
              M(kubegpu.nodes.docker_runtime) last had nothing to change. It is returned until a
              relevant file or the daemon changes. V(null) means that it cannot be read.
          returned: always
          type: dict
          sample:
            containerd:
              version: 1.6.20
              flavour: containerd
              config_path: /etc/containerd/config.toml
              config_version: 2
              unit: containerd
              active: true
              control_plane: false
              started: "2026-11-21T07:12:40Z"
              converged: {nvidia: 5d1be7e9dda1ee8896be5b7e34a85ee1}
              handlers:
                runc: {type: io.containerd.runc.v2, path: null, options: {SystemdCgroup: true}}
              default_handler: runc
              cri_enabled: true
              cdi_enabled: null
            docker: null
            crio: null
        nvml:
          description: >-
            What the driver says: C(driver_version), C(cuda_version) and C(devices), with memory in
            MiB. V(null) where the driver does not answer, or nothing is there to ask it with.
            C(fabric) of a device has C(state) (V(not_started), V(in_progress), V(completed)) and,
            where that is completed, C(status) (V(success), or what went wrong); V(null) for one
            that joins no NVLink fabric.
          returned: always
          type: dict
          sample:
            driver_version: 580.126.09
            cuda_version: "13.0"
            devices:
              - address: "0000:3b:00.0"
                uuid: GPU-3b5c8d1e-0000-0000-0000-000000000000
                name: Tesla T4
                serial: null
                minor_number: 0
                memory_total: 15360
                persistence_mode: enabled
                compute_mode: default
                ecc_mode: enabled
                mig_mode: null
                mig_mode_pending: null
                mig_devices: []
                fabric: null
        problems:
          description: >-
            What is wrong with the node: C(code) (in snake case), C(cause), C(evidence) and
            C(next_step).
          returned: always
          type: list
          elements: dict
          sample:
            - code: no_container_runtime
              cause: No container runtime is on this node.
              evidence: neither containerd, dockerd nor crio was found
              next_step: >-
                Install containerd, CRI-O or Docker (this collection never does), then run again.
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import (
    STATE_PATH,
    gather,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import RuntimePaths


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/"},
            "containerd_config_path": {"type": "path", "default": "/etc/containerd/config.toml"},
            "docker_config_path": {"type": "path", "default": "/etc/docker/daemon.json"},
            "state_path": {"type": "path", "default": STATE_PATH},
        },
        supports_check_mode=True,
    )
    reader = NodeReader(module.params["root"], module_runner(module))
    paths = RuntimePaths(
        module.params["containerd_config_path"], module.params["docker_config_path"]
    )
    node = gather(reader, paths, module.params["state_path"])
    module.exit_json(changed=False, ansible_facts={"gpu_node": node})


if __name__ == "__main__":
    main()
