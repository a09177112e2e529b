# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of package managers (apt, dnf, zypper). Data, not code.

The first row that matches counts: what is specific stands before what follows from it. What a node
shows in addition (file systems, locks, pins) is in ``_packages/failures.py``.
"""

from __future__ import annotations

from ..._core.finding import POSSIBLE, WARNING
from ..types import PACKAGE_ERRORS, Rule
from .pacman import PACMAN

READ = "2026-11-28"
_MANAGER = "a package manager"
_SOURCE = "apt, dpkg, dnf and zypper, run by the tests of this collection; tests/reports"
_AGAIN = "then run again: it continues where this run stopped."
#: What shows that a text is of a package manager: the messages are general ones.
MANAGERS = (
    r"(?m)^\s*(?:\d[\d.]* )?(?:E|W|Err|Get|Hit):|^\s*Probl.{1,2}me?s?(?: \d+)?: |Signing key on "
    r"|\b(?:apt|apt-get|dnf|dnf5|yum|zypper) (?:-\S{1,20} ){0,3}(?:install|reinstall|update|upgrade"
    r"|remove|module|refresh)\b|\bdpkg\b|Reading package lists|InRelease"
    r"|/usr/bin/(?:apt-get|apt|dnf|yum|zypper)\b|\b(?:Pre-?)?Depends: [a-z0-9]"
    r"|modular filtering|Failed to resolve the transaction|repomd\.xml|GPG check FAILED"
    r"|Public key for \S{1,120}\.rpm is not installed|Transaction (?:test|check) error:"
    r"|\[MIRROR\] \S|Error downloading packages:|All mirrors were (?:already )?tried"
    r"|not found on medium '|>>> Status code: \d"
)

#: Where no repository has DKMS; the driver's role says where each system has it.
DKMS_MISSING = "dkms_missing"

# Packages of which a text says in another language that another one is missing: only the names and
# the versions are the same in all languages.
_RELATION = (
    r"(?:^|\n) {0,8}[a-z0-9][\w.+-]{1,60}(?::\w{1,8})? : [^\n:\d(]{2,40}: {0,2}[a-z0-9]"
    r"[\w.+-]{1,60}(?: \(= | \(>= | \(<= | \(<< | \(>> )"
)
PACKAGES = (
    *PACMAN,
    Rule(
        "package_filtered",
        r"NVIDIA driver: (?:some kernel packages have been filtered due to missing precompiled "
        r"modules|filtering kernel (?P<kernel>\S{1,80}), no precompiled modules)"
        r"|NOTE: Skipping kernel installation since no kernel module package (?P<module>\S{1,120})",
        "dnf with the plugin of NVIDIA's repository",
        "NVIDIA has no precompiled module yet for a kernel of the distribution {kernel}, and the "
        "plugin dnf-plugin-nvidia therefore holds that kernel back. The installed kernel and "
        "driver go on working.",
        "Wait: NVIDIA publishes the module some days after a kernel; dnf nvidia-plugin lists what "
        "is held back. If the kernel is urgent, switch the module's stream from a precompiled to a "
        "DKMS one (dnf module list nvidia-driver: open-dkms, or latest-dkms). Do not remove the "
        "plugin and keep the precompiled stream: the next boot would have no module. Modules are "
        "made "
        "for kernels of RHEL; those of its siblings may have other names.",
        "NVIDIA driver: some kernel packages have been filtered due to missing precompiled "
        "modules.",
        "github.com/NVIDIA/yum-packaging-precompiled-kmod/issues/53, 43",
        READ,
        severity=WARNING,
        covers=("package_conflict", "package_missing"),
    ),
    Rule(
        "package_image_system",
        r"system is configured to be read-only|This is a transactional-server"
        r"|\brpm-ostree (?:install|override|upgrade)\b[^\n]{0,300}\n(?:[^\n]{0,300}\n){0,5}?"
        r"error: Read-only file system",
        "dnf, rpm-ostree, zypper",
        "The system of this node is an image that is not changed while it runs: a package manager "
        "cannot install anything in it.",
        "Put the packages into the image: with bootc into its Containerfile, then build it, bootc "
        "upgrade, and reboot; with rpm-ostree by rpm-ostree install on a system that was booted "
        "from its disk, and reboot; with transactional-update by transactional-update pkg install, "
        "and reboot. What is installed with --transient is gone after a boot.",
        "Error: this bootc system is configured to be read-only. For more information, run `bootc "
        "--help`.",
        "github.com/bootc-dev/bootc (docs/src/package-managers.md); dnf, zypper (sources); "
        "tests/reports",
        READ,
        covers=("package_read_only", "package_locked"),
    ),
    Rule(
        "repository_by_distribution",
        r"nvidia\.github\.io/(?:libnvidia-container|nvidia-docker|nvidia-container-runtime)/"
        r"(?:[\w-]{1,20}/)?(?:ubuntu|debian|linuxmint|centos|rhel|amzn|opensuse-leap)[\d.]{1,8}"
        r"\S{0,30} {1,3}(?:In)?Release'? (?:no longer has|does not have) a Release file"
        r"|# Unsupported distribution!",
        "apt; NVIDIA's server",
        "The address of NVIDIA's container toolkit names a distribution, and NVIDIA has no folder "
        "for each distribution any more: the address leads to a page.",
        "Remove the entry from /etc/apt/sources.list.d (or /etc/yum.repos.d), and use "
        "https://nvidia.github.io/libnvidia-container/stable/deb (or stable/rpm), the same for all"
        " distributions and for those that are derived of them; the role "
        "nvidia_container_toolkit writes it.",
        "E: The repository 'https://nvidia.github.io/libnvidia-container/stable/ubuntu22.04/amd64  "
        "Release' no longer has a Release file.",
        "github.com/NVIDIA/nvidia-container-toolkit/issues/91; "
        "github.com/NVIDIA/nvidia-docker/issues/848",
        READ,
    ),
    Rule(
        "package_disk_full",
        r"no space left on device|enough free space|not enough (?:disk )?space|disk quota exceeded"
        r"|more space needed on the|needs \S+ (?:more space )?on the \S+ filesystem",
        _MANAGER,
        "The disk of this node is full.",
        f"Free space (below /var/cache, /var/lib or /usr), {_AGAIN}",
        "E: You don't have enough free space in /var/cache/apt/archives/.",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "package_read_only",
        r"read-only file ?system",
        _MANAGER,
        "A file system of this node is mounted read-only.",
        "Mount it writable. If the kernel remounted it after an error (journalctl -k), check the "
        "disk first; on a system whose image is read-only by design, the packages belong into the "
        "image.",
        "dpkg: error processing archive x.deb: unable to create /usr/lib/x: Read-only file system",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "package_not_root",
        r"are you root\?|superuser privileges|root privileges are required",
        _MANAGER,
        "The package manager was not run as root.",
        "Run with become, and with a become_user that is root.",
        "E: Unable to lock the administration directory (/var/lib/dpkg/), are you root?",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "package_locked",
        r"could not get lock|unable to (?:acquire|lock)|is locked by another process"
        r"|Failed to lock|dpkg frontend lock|lock is held by|System management is locked"
        r"|transaction lock",
        _MANAGER,
        "Another run of the package manager holds its lock.",
        "Wait until it has ended (an unattended upgrade can take minutes), or raise lock_timeout.",
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 (apt)",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "package_locked",
        r"Waiting for process with pid \d{1,10} to finish",
        "dnf",
        "Another run of the package manager holds its lock.",
        "Wait until it has ended (an unattended upgrade can take minutes), or raise lock_timeout.",
        "Waiting for process with pid 4711 to finish.",
        _SOURCE,
        READ,
    ),
    Rule(
        "repository_not_valid",
        r"Release file .*(?:is not valid yet|is expired)",
        _MANAGER,
        "The metadata of a repository is not valid at the time of this node's clock.",
        "Compare date on the node with the time of other machines; if the clock is right, the "
        "mirror of the repository is old.",
        "E: Release file for http://mirror.example/InRelease is not valid yet",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "repository_key_weak",
        r"SHA1 is not considered secure|Policy rejected (?:non-revocation )?signature"
        r"|Signing key on [0-9A-F]{16,64} is not bound",
        "apt (sqv)",
        "A repository's key is signed with SHA1, which the policy of this system does not accept "
        "any "
        "more: the owner of the repository has to publish the key again, signed with SHA-256.",
        "Take the owner's newer key, if there is one; otherwise disable the repository on this "
        "node. "
        "Do not turn the check off.",
        "Signing key on EB693B3035CD5710E231E123A4B469963BF863CC is not bound: because: SHA1 is "
        "not considered secure since 2026-02-01T00:00:00Z",
        "github.com/claytono/ansible-role-nvidia; Debian 13, sqv",
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "repository_key_rejected",
        r"NO_PUBKEY|is not signed|EXPKEYSIG|BADSIG|REVKEYSIG|couldn.t be verified"
        r"|cannot be authenticated|Sub-process /usr/bin/sqv|GPG check FAILED|is not signed by"
        r"|Signature verification failed|GPG signature verification error|bad GPG signature"
        r"|Public key for \S+ is not installed|GPG key .*not (?:trusted|known)|NOKEY"
        r"|is not readable by user",
        _MANAGER,
        "A repository's signature is not accepted.",
        "Correct the key of the repository that is named; kubegpu.nodes.package_repository checks "
        "it by fingerprint.",
        "W: GPG error: http://mirror.example InRelease: NO_PUBKEY A4B469963BF863CC",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "package_would_remove",
        r"remove is disabled",
        _MANAGER,
        "The set cannot be installed without removing other packages, which is never done.",
        "Remove them manually, or name them in obsolete.",
        "E: Packages need to be removed but remove is disabled.",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "repository_out_of_sync",
        r"File has unexpected size|Mirror sync in progress",
        "apt",
        "A repository was changed while it was read: its index and its files are of two states.",
        "Run again in some minutes. If it remains, the mirror or a cache in front of it is out of "
        "date: refresh it.",
        "E: Failed to fetch http://mirror.example/Packages File has unexpected size (2029789 != "
        "2026885). Mirror sync in progress?",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "repository_out_of_sync",
        r"(?:\[MIRROR\] |>>> )[^\n]{0,200}?Status code: 404 for \S{1,300}/"
        r"(?P<rpm>[^/\s]{1,200}\.rpm)\b"
        r"|File '(?:[^'\n]{0,300}/)?(?P<file>[^'/\n]{1,200}\.rpm)' not found on medium"
        r"|Failed to fetch \S{1,300}/(?P<deb>[^/\s]{1,200}\.deb) {1,4}404\b",
        "apt, dnf, zypper",
        "The index of a repository has {rpm}{file}{deb}, and its server has no such file (404): "
        "the mirror has the index of one state and the packages of another, or the node's copy of "
        "the index is an old one.",
        "Read the index again on the node (apt-get update; dnf clean metadata; zypper refresh "
        "--force), then run again. If it remains, fill the mirror again, with all versions that "
        "the index has (dnf reposync without --newest-only), or ask for a version that it has.",
        "[MIRROR] nvidia-driver-580.95.05-1.el9.x86_64.rpm: Status code: 404 for "
        "https://mirror.example/rhel9/x86_64/nvidia-driver-580.95.05-1.el9.x86_64.rpm",
        "github.com/mariadb-corporation/galera/issues/693; "
        "github.com/OpenMandrivaAssociation/distribution/issues/2532; "
        "github.com/falcosecurity/falco/issues/1879; "
        "github.com/NVIDIA/ansible-role-nvidia-driver/issues/72",
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "package_hash_mismatch",
        r"hash sum mismatch|size mismatch|checksum doesn.t match|checksums? .*do(?:es)? not match",
        _MANAGER,
        "A package that was fetched is not the one that the repository lists.",
        "Refresh or repair the mirror.",
        "E: Failed to fetch http://mirror.example/x.deb Hash Sum mismatch",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "repository_proxy",
        r"407 +Proxy Authentication|could not resolve proxy|proxy CONNECT aborted"
        r"|Received HTTP code \d+ from proxy",
        _MANAGER,
        "The proxy of this node refuses the connection, or is not found.",
        "Correct the address of the proxy, or its user and password.",
        "E: Failed to fetch http://mirror.example 407 Proxy Authentication Required",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "repository_certificate",
        # Not every self-signed certificate: DKMS makes one to sign kernel modules, and says it.
        r"certificate verif|SSL certificate problem|certificate is NOT trusted"
        r"|self.signed certificate (?:in certificate chain|encountered)|peer certificate",
        _MANAGER,
        "The certificate of a repository's server is not accepted.",
        "Give the certificate authority by ca_file, or correct the server's certificate.",
        "E: Certificate verification failed: The certificate is NOT trusted.",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "repository_forbidden",
        r"\b40[13] +(?:Unauthorized|Forbidden)|Status code: 40[13]\b|error: 40[13]\b",
        _MANAGER,
        "A repository refuses access.",
        "Correct user and password of the repository or its mirror, or the rules of its server.",
        "Error: Status code: 403 for http://mirror.example/repodata/repomd.xml",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "repository_unreachable",
        r"failed to fetch|could not resolve|could not connect|connection (?:refused|timed out)"
        r"|404 +Not Found|HTTPS? Error 404|Failed to update apt cache|Curl error"
        r"|All mirrors were (?:already )?tried|No more mirrors to try|have a Release file"
        r"|Failed to download metadata|Cannot download|Valid metadata not found|Download \(curl\)",
        _MANAGER,
        "A package repository cannot be reached.",
        "Check the repository's address, proxy and certificate authority from this node.",
        "E: Failed to fetch http://mirror.example/x.deb Could not connect",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "package_filtered",
        r"filtered out by (?:exclude|modular) filtering|matches only excluded packages",
        _MANAGER,
        "A setting of the package manager hides a package that a repository has: an exclusion, or "
        "the stream of a dnf module, such as nvidia-driver.",
        "Check exclude and excludepkgs of its configuration, its version locks, and the streams of "
        "its modules (dnf module list nvidia-driver; dnf module reset nvidia-driver, then enable "
        "the stream).",
        "Error: All matches were filtered out by modular filtering for argument: cuda-drivers",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        DKMS_MISSING,
        r"(?:nothing provides|No match for argument:?|No provider of|Unable to locate package"
        r"|No package list of this node has\b[^\n]{0,200}?)[ ']{1,2}(?<![\w-])dkms(?![\w-])"
        r"(?: >= (?P<version>[\d.]{1,20}))?",
        _MANAGER,
        "No repository of this node has DKMS {version}, with which the driver's kernel modules are "
        "built.",
        "Enable the repository that has it: EPEL on RHEL and its siblings, the distribution's own "
        "elsewhere. If it is enabled, its mirror or snapshot is too old. Precompiled modules need "
        "no DKMS.",
        "nothing provides dkms >= 3.1.8 needed by kmod-nvidia-open-dkms-3:575.57.08-1.el9.noarch",
        "github.com/stackhpc/ansible-slurm-appliance/pull/703",
        READ,
        covers=("package_missing", "package_conflict"),
    ),
    Rule(
        "package_version_missing",
        r"Version '(?P<version>[^'\n]{1,80})' for '(?P<package>[^'\n]{1,80})' was not found",
        "apt",
        "The version {version} of {package} is in no repository of this node, or that package is "
        "a virtual one: since driver 580 NVIDIA's packages have no branch in their names "
        "(nvidia-fabricmanager, libnvsdm).",
        "Compare apt-cache policy {package}; ask for a version that it lists, or for the package "
        "that provides the virtual one.",
        "E: Version '580.65.06-1' for 'nvidia-fabricmanager-580' was not found",
        "github.com/NVIDIA/gpu-driver-container/pull/451",
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "package_missing",
        r"Unable to locate package linux-(?:modules|objects|signatures)-nvidia-\S{0,40}?"
        r"(?P<kernel>\d+\.\d+\.\d+-(?:talos|flatcar))\b",
        _MANAGER,
        "No archive has NVIDIA's modules for kernel {kernel}: this driver container was made for "
        "the kernels of Ubuntu.",
        "Bring the driver by system extensions (Talos: nvidia-open-gpu-kernel-modules or "
        "nonfree-kmod-nvidia, and nvidia-container-toolkit; Flatcar: a line such as "
        "nvidia-drivers-570-open in /etc/flatcar/enabled-sysext.conf), and set "
        "driver.enabled=false of the GPU operator.",
        "E: Unable to locate package linux-modules-nvidia-535-server-6.1.51-talos",
        "github.com/siderolabs/talos/issues/8402",
        READ,
        context=MANAGERS,
    ),
    Rule(
        "package_missing",
        r"no available installation candidate|was not found|No package matching"
        r"|Unable to locate package|has no installation candidate|Unable to find a match"
        r"|No package \S+ available|No provider of|No match for argument"
        r"|Failed to install some of the specified packages"
        # In German, French, Spanish, Italian, Portuguese, Chinese and Japanese, as apt and dnf
        # have them.
        r"|Paket \S{1,80} kann nicht gefunden werden|Kein Paket \S{1,80} verfügbar"
        r"|Impossible de trouver le paquet|No se ha podido localizar el paquete"
        r"|Impossibile trovare il pacchetto|Impossível encontrar o pacote|无法定位软件包"
        r"|パッケージ \S{1,80} が見つかりません|Невозможно найти пакет"
        r"|Es konnte keine Übereinstimmung gefunden werden",
        _MANAGER,
        "A package or its version is in no repository of this node.",
        "Ask for a version or branch that the repositories have (apt-cache policy, dnf list), or "
        "add "
        "the repository that has it.",
        "E: Unable to locate package nvidia-graphics-drivers-555",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "package_pop_pin",
        r"\bbut (?P<version>\S{1,60}pop\d~\S{1,60}) is (?:to be )?installed",
        "apt on Pop!_OS",
        "apt takes {version} of Pop!_OS's own repository, which does not go with the other "
        "packages: System76's repository has a priority above NVIDIA's.",
        "Take all of these packages from one repository: give NVIDIA's a higher priority (a file "
        "in /etc/apt/preferences.d with Package: *nvidia-container*, Pin: origin nvidia.github.io, "
        "Pin-Priority: 1002), or install those of Pop!_OS only. The driver "
        "remains system76-driver-nvidia.",
        "nvidia-docker2 : Depends: nvidia-container-runtime (>= 3.4.0) but "
        "3.1.4-0pop1~1569270714~20.04~2ea45f8 is to be installed",
        "github.com/NVIDIA/nvidia-docker/issues/1388; github.com/pop-os/upgrade (preferences)",
        READ,
        covers=("package_conflict",),
    ),
    Rule(
        "package_conflict",
        r"file (?P<file>/\S{1,200}) (?:from install of|conflicts between attempted installs of) "
        r"(?P<one>\S{1,120}) (?:and|conflicts with file from package) (?P<other>\S{1,120})",
        "dnf, rpm",
        "The packages {one} and {other} have different files {file}: they are of two repositories "
        "that both have this software.",
        "Keep one of the repositories: dnf repoquery --whatprovides {file} names the packages "
        "of each. Turn the other one off (dnf config-manager), or exclude its packages there.",
        "Error: Transaction test error:\n  file /etc/X11/xorg.conf.d/10-nvidia.conf conflicts "
        "between attempted installs of xorg-x11-nvidia-3:560.35.03-2.el9.x86_64 and "
        "nvidia-driver-3:560.35.03-1.el9.x86_64",
        "github.com/negativo17/nvidia-driver/issues/162",
        "2026-11-28",
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "package_conflict",
        r"unmet dependencies|generated breaks|but none of the providers can be installed"
        r"|\bobsoletes .{1,200} provided by|\brequires \S+ [<>=]+|held broken packages|but it is "
        r"not (?:going to be )?install"
        r"|nothing provides|conflicting requests|Depsolve Error|cannot install both"
        r"|requirement cannot be provided|not installable providers"
        # In other languages.
        rf"|{_RELATION}",
        _MANAGER,
        "The packages' dependencies cannot be met.",
        "See what is held, pinned or of another repository (apt-mark showhold, apt-cache policy; "
        "dnf "
        "repoquery, dnf versionlock list). Do not mix NVIDIA's repository with another one that "
        "has "
        "the driver. Add the repository that has what is missing, or ask for a version that fits.",
        "E: Unable to correct problems, you have held broken packages.",
        _SOURCE,
        READ,
        confidence=POSSIBLE,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
    Rule(
        "package_script_failed",
        r"dpkg was interrupted|returned an error code|post-installation script subprocess "
        r"returned|subprocess .{1,80} script returned"
        r"|scriptlet failed|scriptlet, exit status",
        _MANAGER,
        "A package's own script failed; packages are left half configured.",
        f"Correct what the script reports, {_AGAIN}",
        "E: Sub-process /usr/bin/dpkg returned an error code (1)",
        _SOURCE,
        READ,
        context=MANAGERS,
        within=PACKAGE_ERRORS,
    ),
)
