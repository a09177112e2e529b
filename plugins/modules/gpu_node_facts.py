#!/usr/bin/python
# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_node_facts
short_description: Gather facts about the GPUs of a node and their software
version_added: 0.1.0
description:
  - Finds the GPUs of a node by their PCI functions, and returns them in the fact C(gpu_node),
    together with the driver, CUDA, the container toolkit, package repositories and container
    runtimes.
  - Needs no driver, no C(lspci) and no Python library on the node, and changes nothing.
  - Never fails because something is missing. A value is V(null) if it does not exist or if the user
    may not read it; C(become) reads everything.
  - Returns GPUs of NVIDIA, AMD and Intel, but no integrated graphics, no management chips and no
    audio, USB and bridge functions.
  - On nodes without such a GPU, container runtimes are not queried, because no decision depends on
    them. C(driver.services) and the C(active), C(started), C(containers_running), the results of
    C(containerd config dump) and, unless a package has it, the C(version) of C(runtimes) are
    V(null) there.
author:
  - kubegpu.nodes contributors (@kubegpu)
extends_documentation_fragment:
  - kubegpu.nodes.attributes
  - kubegpu.nodes.record
attributes:
  diff_mode:
    description: The module changes nothing.
    support: none
  facts:
    description: Returns an C(ansible_facts) dictionary.
    support: full
options:
  root:
    description:
      - The root directory of the node.
      - With another directory than V(/), only files below it are read, and no command is run. Use
        this for an image, a rescue mount or a test.
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
  driver_timeout:
    description:
      - Seconds for the driver to answer.
      - With eight GPUs and without the persistence daemon, it can take a minute.
    type: int
    default: 60
seealso:
  - module: kubegpu.nodes.nvidia_driver
  - module: kubegpu.nodes.containerd_runtime
  - module: kubegpu.nodes.docker_runtime
  - name: Verification
    description: What is checked from the PCI bus to a container and a pod.
    link: https://kubegpu.example/nodes/blob/main/docs/verify.md
requirements:
  - Root on the node (C(become)) for complete facts. Without it, what only root can read is V(null).
notes:
  - Works as a facts module, with C(ansible_facts_modules) or in C(facts_modules).
  - Reads the devices with the Python library C(pynvml) if the node has it, or else with
    C(nvidia-smi).
"""

EXAMPLES = r"""
- name: Gather the facts
  kubegpu.nodes.gpu_node_facts:
  become: true

- name: Show the GPUs
  ansible.builtin.debug:
    msg: "{{ ansible_facts['gpu_node'].gpus | map(attribute='product') }}"

- name: Put the hosts into groups such as gpu_nvidia
  ansible.builtin.group_by:
    key: "gpu_{{ item }}"
  loop: "{{ ansible_facts['gpu_node'].gpus | map(attribute='vendor') | unique }}"

- name: Fail on nodes with GPUs of NVIDIA whose driver does not answer
  ansible.builtin.assert:
    that: ansible_facts['gpu_node'].nvml is not none
    fail_msg: "{{ ansible_facts['gpu_node'].problems | map(attribute='cause') | join(' ') }}"
  when: ansible_facts['gpu_node'].gpus | selectattr('vendor', 'eq', 'nvidia') | length > 0

- name: Name the nodes that run another driver than the installed one
  ansible.builtin.debug:
    msg: "loaded {{ driver.loaded }}, after a reboot {{ driver.installed }}"
  vars:
    driver: "{{ ansible_facts['gpu_node'].driver }}"
  when: driver.pending_reboot

# With eight GPUs and without the persistence daemon, the driver can take a minute to answer.
- name: Give a slow driver more time
  kubegpu.nodes.gpu_node_facts:
    driver_timeout: 180
  become: true

- name: Use other configuration files of the runtimes
  kubegpu.nodes.gpu_node_facts:
    containerd_config_path: /opt/containerd/config.toml
    docker_config_path: /opt/docker/daemon.json
  become: true

# Only files below it are read, and no command is run.
- name: Read a mounted image
  kubegpu.nodes.gpu_node_facts:
    root: /mnt
  become: true

- name: Read what an unprivileged user can read
  kubegpu.nodes.gpu_node_facts:
  become: false
  register: seen

- name: Save the facts on the controller
  ansible.builtin.copy:
    content: "{{ seen.ansible_facts.gpu_node | to_nice_json }}"
    dest: "./{{ inventory_hostname }}.json"
    mode: "0600"
  delegate_to: localhost
"""

RETURN = r"""
become:
  description: Whether the task becomes another user. The user itself is up to the inventory.
  returned: always
  type: bool
  sample: true
ansible_facts:
  description: The facts.
  returned: always
  type: dict
  contains:
    gpu_node:
      description: The node and its software. All keys are always present.
      returned: always
      type: dict
      contains:
        os:
          description:
            - C(family) (V(debian), V(rhel), V(suse)), C(id), C(version), C(codename), C(arch),
              C(kernel), C(package_manager), C(hostname), C(fqdn), C(machine_id) and C(boot_id).
            - C(image) is what shows that the system is an image whose packages are not changed
              while it runs, and C(image_system) its kind (V(bootc), V(rpm-ostree),
              V(transactional-update), V(flatcar), V(cos), V(talos) and others, or V(read-only) for
              one that is not known); both are V(null) for other systems.
            - C(upstream) has C(id), C(version) and C(codename) of the release from which a derived
              system (Linux Mint, Pop!_OS, Zorin OS) takes its packages, by its os-release; V(null)
              if it has none.
            - C(product) is V(Proxmox VE) where its packages are installed, otherwise V(null).
            - C(archive) is apt's entry for the distribution's own archive, with C(file), C(uri),
              C(suites), C(components) and C(signed_by) (a path, or V(null) for apt's default
              keys); V(null) if there is none. Entries of this collection are left out.
            - C(fqdn) is read from files of the host, not from DNS.
            - C(libc) is the C library, with C(name) (V(glibc), from its package, or V(musl)) and
              C(version) (V(null) for V(musl)); V(null) if it is not known.
          returned: always
          type: dict
          sample:
            family: debian
            id: debian
            version: "12"
            codename: bookworm
            archive:
              file: /etc/apt/sources.list.d/debian.sources
              uri: http://mirror.example/debian
              suites: [bookworm, bookworm-updates]
              components: [main]
              signed_by: /usr/share/keyrings/debian-archive-keyring.gpg
            arch: x86_64
            kernel: 6.1.0-37-amd64
            package_manager: apt
            hostname: gpu1
            fqdn: gpu1.example.com
            machine_id: 2d9ad6e6ed1c4bd1b4f1f1bb2e4bbd2d
            boot_id: 0d2ea6a0-5a1b-4bd4-a5d5-6e9c0a0a3a52
            image: null
            image_system: null
            upstream: null
            product: null
            libc: {name: glibc, version: "2.36"}
        as_root:
          description: Whether root read the node; V(null) for another O(root) than V(/).
          returned: always
          type: bool
          sample: true
        python:
          description: >-
            Versions of the node's Python and of the libraries C(tomlkit) and C(pynvml). An empty
            string is a library without a version.
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
            - C(vgpu.guest) is V(true) for a virtual GPU of this guest, with version and branch of
              the host's driver. It is V(null) if only root can read it.
            - C(vgpu.licence) (license) is V(null) for a whole GPU, or if it is not reported.
              Otherwise it has C(product), C(status) in the driver's words, C(state) and C(expiry)
              (an ISO time, or V(null)). C(state) is V(licensed), V(grace) (unlicensed, and not yet
              slowed down), V(unlicensed) or V(unknown). C(pynvml) reports V(unlicensed) for both.
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
              vgpu:
                guest: false
                host_driver_version: null
                host_driver_branch: null
                licence: null
        nvswitches:
          description: The number of NVSwitch chips on the PCI bus of the node.
          returned: always
          type: int
          sample: 0
        nvswitch_bridges:
          description:
            - The number of bridges to NVSwitches that are not on the PCI bus of the node (HGX B200,
              B300); V(0) with other GPUs, V(null) if only root can read it.
          returned: always
          type: int
          sample: 0
        kernel_drivers:
          description:
            - The loaded drivers of AMD and Intel GPUs (C(amdgpu), C(i915), C(xe)) by name, with
              C(version), which is V(null) for a driver of the kernel itself. Empty on a node
              without such a GPU.
          returned: always
          type: dict
          sample: {}
        device_nodes:
          description:
            - The device nodes of AMD and Intel GPUs (C(/dev/kfd) and C(/dev/dri/renderD*)), with
              those of integrated graphics, by C(path), with C(driver), C(address) and C(device_id)
              on the PCI bus (V(null) for C(/dev/kfd)), C(partition) of an Instinct card (such as
              V(spx_nps1)), C(character_device), and C(group) and C(mode) (octal), which are V(null)
              if there is no such file. Empty on a node without such a GPU.
          returned: always
          type: list
          elements: dict
          sample: []
        gpudirect_modules:
          description: >-
            Loaded kernel modules whose devices the device plugin can give to containers
            (C(nvidia_fs) of GPUDirect Storage, C(ib_uverbs) of RDMA, C(gdrdrv) of GDRCopy).
          returned: always
          type: list
          elements: str
          sample: [gdrdrv]
        driver:
          description:
            - C(loaded) is the version of the loaded kernel module, C(installed) the one on disk,
              C(userland) that of the libraries. C(kernel_module) is V(open) or
              V(proprietary). C(source) is V(distro), V(nvidia), V(runfile) or V(null).
            - C(packages) maps names to versions. C(dkms) lists C(kernel), C(version) and C(state)
              (V(added), V(built), V(installed), V(failed)). C(held) is whether all packages are
              held, C(unheld) lists those that are not.
            - C(coherent_memory) is the option of the loaded module for the memory of GPUs on boards
              with a Grace CPU, V(driver) or V(numa). Empty is the driver's default; V(null) means
              that no module with this option is loaded.
            - C(streams) maps the modules of dnf 4 with an enabled stream to that stream. It is
              V(null) if it cannot be read, and empty with other package managers.
            - C(pending_reboot) is V(true) if the installed version differs from the loaded one.
            - C(services) maps units to their state (V(active), V(inactive), V(masked) and so on);
              V(null) for a unit that is not there.
            - C(configuration) maps existing files that M(kubegpu.nodes.nvidia_driver) can write to
              their SHA-256, or V(null) if a file cannot be read.
            - C(managed) is whether this collection installed the driver, according to the record on
              the node; V(null) if that cannot be read. C(pending) is the action of an unfinished
              change (V(install), V(upgrade), V(downgrade), V(remove), V(configure)), or empty.
              C(previous) is the driver that this one replaced (C(version), C(branch), C(source),
              C(kernel_module)). C(recorded_files) lists the configuration files in the record;
              V(null) if it cannot be read.
            - C(uninstaller) is the path of the runfile's uninstaller.
            - C(container) is a path that shows a driver container (such as that of NVIDIA's GPU
              operator) on a host without a driver, otherwise V(null).
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
            container: null
        secure_boot:
          description: Whether Secure Boot is enabled.
          returned: always
          type: bool
          sample: false
        nouveau:
          description: >-
            Whether a kernel driver for NVIDIA GPUs (nouveau, nova) is C(loaded) or C(blocked), and
            the loaded C(modules).
          returned: always
          type: dict
          sample: {loaded: false, blocked: true, modules: []}
        blocked_modules:
          description:
            - >-
              What keeps the kernel modules that the GPUs of this node need (C(nvidia),
              C(nvidia_uvm), C(amdgpu), C(i915), C(xe)) from being loaded. Each module that is
              blocked has a list with C(place), a file of modprobe.d or V(kernel command line), and
              C(setting), the line or word.
            - Empty if nothing blocks them or there is no GPU; V(null) if a file cannot be read.
          returned: always
          type: dict
          sample:
            amdgpu:
              - place: /etc/modprobe.d/blacklist-amdgpu.conf
                setting: blacklist amdgpu
        kernels:
          description: >-
            The kernels with modules, and the running one: C(version), C(running), C(on_disk) (false
            in a container), whether its C(headers) are installed, and the version of its NVIDIA
            C(driver) module (V(unknown) if that is compressed, V(null) without one).
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
              NVIDIA, V(runfile), V(distro) or V(null)) and the path of a runfile's C(uninstaller).
              All are below C(/usr/local), except that of the distribution in C(/usr).
            - C(driver_supports) is the newest CUDA version that the loaded driver reports.
            - C(packages) maps packages of toolkits, cuDNN and NCCL to versions. C(held) is whether
              all are held, C(unheld) lists those that are not.
            - C(configuration) maps existing files that M(kubegpu.nodes.cuda_toolkit) can write to
              their SHA-256. C(host_compilers) has the major versions of the installed g++.
              C(compiler) is always V(null).
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
            host_compilers: [12]
            compiler: null
        container_toolkit:
          description:
            - C(version) and C(packages) of NVIDIA's container toolkit, whether all are C(held),
              the CDI specification (C(cdi_spec.path), C(cdi_spec.driver_version)), the settings
              of its configuration file (C(config), with keys such as C(section.key)), and
              installed packages that it replaces (C(obsolete_packages)).
            - C(driver_roots) has the folder in which a toolkit searches for the driver, by its
              configuration file; that of the GPU operator's toolkit is read, too.
          returned: always
          type: dict
          sample:
            version: 1.20.0-1
            packages: {nvidia-container-toolkit: 1.20.0-1}
            held: true
            cdi_spec: {path: /var/run/cdi/nvidia.yaml, driver_version: 580.126.09}
            config: {nvidia-container-runtime.mode: auto}
            driver_roots: {/etc/nvidia-container-runtime/config.toml: /}
            obsolete_packages: {}
        cdi_specifications:
          description: >-
            The CDI specifications of all vendors in C(/var/run/cdi) and C(/etc/cdi), at most 64,
            with C(path), C(kind) (vendor and class) and C(version) (of the CDI specification).
            C(kind) and C(version) are V(null) for a file that does not name them.
          returned: always
          type: list
          elements: dict
          sample:
            - path: /var/run/cdi/nvidia.yaml
              kind: nvidia.com/gpu
              version: 0.7.0
        podman:
          description: The version of Podman, from its package; V(null) without one.
          returned: always
          type: str
          sample: null
        selinux:
          description: >-
            SELinux. C(mode) is V(enforcing), V(permissive) or V(disabled), in the running kernel;
            V(null) if that is not visible, as in a container. C(configured) is that of
            C(/etc/selinux/config); V(null) without one.
          returned: always
          type: dict
          sample: {mode: enforcing, configured: enforcing}
        amd_container_toolkit:
          description:
            - C(version) of AMD's container toolkit and whether it is C(held), the CDI specification
              (C(cdi_spec), with C(path), C(devices), C(nodes) and C(made_for), the render nodes for
              which this collection made it), the C(render_nodes) of the node, and the files that a
              killed change of the package left to be restored (C(interrupted)). V(null) on a node
              without AMD GPUs.
          returned: always
          type: dict
          sample: null
        amd_driver:
          description:
            - The C(packages) of AMD's driver (C(amdgpu-dkms)) with their versions, whether they are
              C(held) and were installed by this collection (C(managed)), the builds of C(dkms)
              (each with C(kernel), C(version) and C(state)), and whether another module is loaded
              than the one on the disk (C(pending_reboot)). V(null) on a node without AMD GPUs.
          returned: always
          type: dict
          sample: null
        repositories:
          description:
            - Package repositories of NVIDIA, AMD and Intel, and those that this collection wrote,
              with one entry for each address. Credentials are removed.
            - C(key_fingerprint) is the fingerprint of the only key that the entry trusts; V(null)
              if there is none or several (C(key_fingerprints) has all).
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
            - C(containerd), C(docker) and C(crio); V(null) for one that is not installed.
            - C(containerd) has C(version), C(distribution) (of containerd, such as V(k3s)),
              C(config_path), C(config_version) (of the file), C(unit), C(active), C(control_plane)
              (whether a restart of the unit restarts a member of the control plane), C(handlers)
              (C(type), C(path), C(options)), C(default_handler), C(cri_enabled) and C(cdi_enabled)
              (whether CRI has CDI enabled; V(null) without such a setting). The last four are the
              effective configuration, from C(containerd config dump). The cached result is used
              while C(converged) is not empty and nothing has changed.
            - C(docker) has C(version), C(config_path), C(unit), C(active), C(runtimes) (C(path),
              C(args), C(type)), C(default_runtime), C(live_restore) and C(containers_running), of
              the running daemon, or of the file if the daemon does not answer.
            - C(crio) has C(version), C(config_path), C(drop_in_path), C(unit), C(active), and from
              its files C(runtimes) (C(type), C(path), C(file), C(outdated), whether a handler of
              this collection lacks settings of the node's default runtime, and C(lacks), the keys
              without which CRI-O does not run NVIDIA's program for it), C(default_runtime),
              C(default_file), C(own_runtime) (C(name) and C(path) of the runtime that handlers
              inherit from) and C(restart_required), whether a file changed after CRI-O started.
            - All have C(started), the start of the unit's main process in UTC.
            - C(converged) of C(containerd) and C(docker) has, by the handler's name, the
              fingerprint of the settings for which M(kubegpu.nodes.containerd_runtime) or
              M(kubegpu.nodes.docker_runtime) last had nothing to change. It is returned until a
              relevant file or the daemon changes. V(null) means that it cannot be read.
          returned: always
          type: dict
          sample:
            containerd:
              version: 1.6.20
              distribution: containerd
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
        kubelet:
          description: >-
            The kubelet's C(directory), and which of its C(plugin_folders) (V(plugins_registry),
            V(plugins)) are there; V(null) if the node has no such directory.
            C(cpu_manager_policy) is that of its CPU manager, such as V(none) or V(static), from
            its file C(cpu_manager_state); V(null) without one, or if only root can read it.
          returned: always
          type: dict
          sample:
            directory: /var/lib/kubelet
            plugin_folders: [plugins_registry, plugins]
            cpu_manager_policy: none
        nvml:
          description: >-
            Data of the driver: C(driver_version), C(cuda_version) and C(devices), with memory in
            MiB. V(null) if the driver does not answer, or without C(pynvml) and C(nvidia-smi).
            C(fabric) of a device has C(state) (V(not_started), V(in_progress), V(completed)) and,
            if completed, C(status) (V(success) or an error); V(null) for a device without an NVLink
            fabric. C(mig_devices) have C(index), C(uuid), C(name), C(gpu_instance_id),
            C(compute_instance_id) and C(memory_total). C(mig_profiles) have C(name), C(id),
            C(count), C(size) and the C(starts) where one can begin. C(gpu_instances) have C(id),
            C(profile), C(start), C(size) and their C(compute_instances).
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
                mig_profiles: null
                gpu_instances: null
                fabric: null
        mig:
          description: >-
            MIG and this collection. C(managed) is V(true) if it partitioned the node, C(unfinished)
            has services that an interrupted change has not started again, C(waiting) what the
            driver said to GPUs, by UUID, that were reset in vain, C(at_boot) the SHA-256 of each
            existing file for the boot, C(enabled) is true if their unit is enabled, and C(manager)
            if NVIDIA's MIG manager is.
          returned: always
          type: dict
          sample:
            managed: false
            unfinished: []
            waiting: {}
            at_boot: {}
            enabled: false
            manager: false
        exporter:
          description: >-
            Exporters of GPU metrics. C(systemd) is true if the node runs it; C(method),
            C(expected_gpus) (PCI addresses), C(output) (the file of metrics) and C(page) (their
            address) are what this collection has set up, C(files) the SHA-256 of each of its files,
            C(units) the states of DCGM's and our units, C(enabled) those of them that start at
            boot, and C(foreign_units) the states of known units of others. C(packages) are those of
            DCGM, C(packages_managed) is true if this collection has installed them.
            C(textfile_directories) are the known folders of node_exporter that exist, C(python)
            runs the program for them, and C(listeners) are the TCP ports that are listened on, with
            the program's name for ports of exporters.
          returned: always
          type: dict
          sample:
            systemd: true
            method: textfile
            expected_gpus: ["0000:3b:00.0"]
            output: /var/lib/prometheus/node-exporter/kubegpu.prom
            page: ""
            files: {}
            units: {nvidia-dcgm: null, kubegpu-metrics.timer: active}
            enabled: [kubegpu-metrics.timer]
            foreign_units: {}
            packages: {}
            packages_managed: false
            textfile_directories: [/var/lib/prometheus/node-exporter]
            python: /usr/bin/python3
            listeners: {"22": "", "9100": ""}
        acceptance:
          description: >-
            The last result of the playbook C(kubegpu.nodes.accept): C(passed), C(at) (time),
            C(level), C(driver), C(gpus) (their UUIDs), C(tests) (the programs that were run),
            C(missing) (those that were not installed) and C(causes) (why it failed). V(null) if the
            node was never tested, or only root can read it.
          returned: always
          type: dict
          sample:
            passed: true
            at: "2026-11-24T02:10:00+00:00"
            level: standard
            driver: 580.126.09
            gpus: [GPU-3b5c8d1e-0000-0000-0000-000000000000]
            tests: [dcgm, nvbandwidth]
            missing: []
            causes: []
        verification_due:
          description: >-
            Whether the node has to be verified: a run began to change it, or its last verification
            failed, and none has passed since. V(null) if only root can read it.
          returned: always
          type: bool
          sample: false
        driver_hang:
          description: >-
            How NVIDIA's driver hangs; V(null) if it does not. C(program) did not answer for
            C(seconds). C(pid) is its process, C(state) its state in the kernel (V(D) cannot be
            interrupted), C(wchan) the kernel's function in which it waited, and C(left) is
            true if it still exists after SIGKILL.
          returned: always
          type: dict
          sample:
            program: nvidia-smi
            pid: 4242
            seconds: 60.0
            state: D
            wchan: rm_ioctl
            left: true
        problems:
          description: >-
            The problems of the node, with C(code) (in snake case), C(cause), C(evidence) and
            C(next_step); where they are known, also C(severity), C(gpu), C(fix), C(confidence),
            C(alternatives), C(names) (the names in the texts, such as that of a module), and
            C(template), the next step with names in braces.
          returned: always
          type: list
          elements: dict
          sample:
            - code: no_container_runtime
              cause: No container runtime is on this node.
              evidence: neither containerd, dockerd nor crio was found
              next_step: >-
                Install containerd, CRI-O or Docker (this collection does not), then run again.
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

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    InputError,
    KubegpuError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import fail
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.checks import (
    check_at_least,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import module_stream
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import (
    NVML_SECONDS,
    gather,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.signals import (
    Interrupted,
    raise_on_signals,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import RuntimePaths
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.options import STATE_ARGUMENTS


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/"},
            "containerd_config_path": {"type": "path", "default": "/etc/containerd/config.toml"},
            "docker_config_path": {"type": "path", "default": "/etc/docker/daemon.json"},
            "driver_timeout": {"type": "int", "default": NVML_SECONDS},
            **STATE_ARGUMENTS,
        },
        supports_check_mode=True,
    )
    # nvidia-smi has a process group of its own, which is ended with this process.
    raise_on_signals()
    try:
        node = _read(module)
    except KubegpuError as error:
        fail(module, error)
    except Interrupted as interrupted:
        cause = f"Stopped by {interrupted} before all was read; what was started is ended."
        fail(module, KubegpuError(cause, next_step="Run again."))
    module.exit_json(changed=False, ansible_facts={"gpu_node": node})


def _read(module: AnsibleModule) -> dict[str, Any]:
    seconds = module.params["driver_timeout"]
    check_at_least("driver_timeout", seconds)
    root = module.params["root"]
    if not os.path.isdir(root):
        raise InputError(
            f"kubegpu_root (root of gpu_node_facts): the directory {root} does not exist on the "
            "node.",
            next_step="Give the directory below which the tree is, or mount it there first.",
        )
    reader = NodeReader(root, module_runner(module), module_stream(module))
    paths = RuntimePaths(
        module.params["containerd_config_path"], module.params["docker_config_path"]
    )
    return gather(reader, paths, module.params["state_path"], driver_seconds=seconds)


if __name__ == "__main__":
    main()
