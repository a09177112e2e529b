# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the texts of the project name: files that are there, and no package registry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.data import (
    DISTRIBUTIONS,
    FAMILIES,
    folder_of,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.upstream import (
    DEBIAN_RELEASES,
    UBUNTU,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.driver_branches import (
    REPOSITORIES,
)
from tests.tools.environments import REPOSITORY, checkout_files

# In parts, so that this file has none of the names.
REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("snapshot", "debian", "org"),
        ("ftp", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("security", "ubuntu", "com"),
        ("ports", "ubuntu", "com"),
        ("old-releases", "ubuntu", "com"),
        ("dl", "fedoraproject", "org"),
        ("mirrors", "fedoraproject", "org"),
        ("download", "opensuse", "org"),
        ("updates", "suse", "com"),
        ("cdn", "redhat", "com"),
        ("mirror", "centos", "org"),
        ("mirror", "stream", "centos", "org"),
        ("download", "rockylinux", "org"),
        ("repo", "almalinux", "org"),
        ("yum", "oracle", "com"),
        ("cdn", "amazonlinux", "com"),
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("rubygems", "org"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("sum", "golang", "org"),
        ("repo1", "maven", "org"),
        ("conda", "anaconda", "org"),
        ("registry-1", "docker", "io"),
    )
)
# A path of the project in a text: with a folder, or with a suffix; without placeholders.
PATH = re.compile(r"`([A-Za-z_.][\w./-]*(?:/[\w./-]*|\.(?:py|yml|yaml|md|toml|rst)))`")
# galaxy_info's names of platforms.
PLATFORMS = {
    "ubuntu": "Ubuntu",
    "debian": "Debian",
    "rhel": "EL",
    "rocky": "EL",
    "almalinux": "EL",
    "ol": "EL",
    "centos": "EL",
    "fedora": "Fedora",
    "amzn": "Amazon Linux",
    "sles": "SLES",
    "sles_sap": "SLES",
    "opensuse-leap": "opensuse",
    "opensuse": "opensuse",
}
# Roles that install NVIDIA's software, or change what it installed.
ROLES = ("nvidia_driver", "nvidia_mig", "nvidia_container_toolkit", "cuda_toolkit", "gpu_upgrade")


def registries(text: str) -> list[str]:
    return [name for name in REGISTRIES if re.search(rf"(?<![\w-]){re.escape(name)}", text)]


def test_no_file_names_a_package_registry() -> None:
    broken = []
    for name in checkout_files():
        path = REPOSITORY / name
        if path.is_file() and not path.is_symlink():
            found = registries(path.read_bytes().decode("utf-8", "replace"))
            broken += [f"{name}: {one}" for one in found]
    assert not broken, "write mirror.example:\n" + "\n".join(broken)


def test_a_registry_would_be_seen() -> None:
    host = ".".join(("deb", "debian", "org"))
    assert registries(f"URIs: http://{host}/debian") == [host]
    assert registries(f"http://mirror.example/{host.replace('.', '-')}") == []
    # Part of another name.
    assert registries(f"my{host}") == []


def paths(text: str) -> list[str]:
    return [name.rstrip("/") for name in PATH.findall(text)]


def test_the_paths_of_contributing_are_there() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = paths(text)
    assert len(named) > 15
    missing = [name for name in named if not (REPOSITORY / name).exists()]
    assert not missing, f"not in the project (plugins/module_utils/ in front?): {missing}"
    # The files of a commit that is a year old are not those of today.
    assert not re.search(r"commit `[0-9a-f]{7,}`", text)


def test_a_path_that_is_gone_would_be_seen() -> None:
    assert paths("`_distro/data.py`, `make lint`, `plan.py`, `a/<subject>/x.py`, `docs/`") == [
        "_distro/data.py", "plan.py", "docs",
    ]  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
def test_the_platforms_of_a_role_are_those_of_the_table(role: str) -> None:
    """A distribution that NVIDIA does not list is none that Galaxy is told."""
    meta = yaml.safe_load((REPOSITORY / "roles" / role / "meta" / "main.yml").read_text())
    named = [one["name"] for one in meta["galaxy_info"]["platforms"]]
    known = {PLATFORMS[name] for name, row in DISTRIBUTIONS.items() if not row.best_effort}
    assert named == sorted(known)


# By its codename, or by its number; SUSE's are "all" for Galaxy.
CODENAMES = {"Debian": ("debian", DEBIAN_RELEASES), "Ubuntu": ("ubuntu", UBUNTU)}
NUMBERED = {"Amazon Linux": "amzn", "EL": "rhel", "Fedora": "fedora"}


def releases(platform: str) -> list[str]:
    """Return the releases for which NVIDIA has a folder, as Galaxy names them."""
    if platform in CODENAMES:
        name, known = CODENAMES[platform]
        return [word for word, version in known.items() if folder_of(name, version) in REPOSITORIES]
    if platform in NUMBERED:
        name = re.escape(NUMBERED[platform])
        found = [re.fullmatch(rf"{name}(\d+)", folder) for folder in REPOSITORIES]
        return sorted((one[1] for one in found if one), key=int)
    return ["all"]


@pytest.mark.parametrize("role", ROLES)
def test_the_releases_of_a_role_are_those_of_the_tables(role: str) -> None:
    file = f"roles/{role}/meta/main.yml"
    meta = yaml.safe_load((REPOSITORY / file).read_text())
    for one in meta["galaxy_info"]["platforms"]:
        expected = releases(one["name"])
        assert one["versions"] == expected, f"{one['name']}. Next step: versions in {file}"


def modules_of_package_managers() -> list[Path]:
    folder = REPOSITORY / "plugins" / "modules"
    return [path for path in sorted(folder.glob("*.py")) if "kubegpu.nodes.package_manager"
            in path.read_text(encoding="utf-8")]  # fmt: skip


@pytest.mark.parametrize("path", modules_of_package_managers(), ids=lambda path: path.stem)
def test_the_platforms_of_a_module_are_the_families_of_the_table(path: Path) -> None:
    (platforms,) = re.findall(r"^    platforms: (.*)$", path.read_text(encoding="utf-8"), re.M)
    assert platforms.split(", ") == list(FAMILIES)


def test_the_documentation_of_cluster_modules_tells_that_certificates_are_verified() -> None:
    text = (REPOSITORY / "plugins" / "doc_fragments" / "kube.py").read_text(encoding="utf-8")
    note = text.partition("insecure-skip-tls-verify")[2]
    assert "is refused" in note.partition("\n\n")[0][:80]


GUIDES = sorted((REPOSITORY / "docs" / "docsite" / "rst").glob("guide_*.rst"))
# The form of a guide, in this order. A guide may have more headings.
HEADINGS = (
    "Requirements", "Assumptions", "Example", "What to expect", "Verify", "Troubleshooting",
    "Teardown",
)  # fmt: skip


def sections(text: str) -> dict[str, str]:
    """Return the sections of a guide by their headings."""
    _title, *parts = re.split(r"^(.+)\n-{3,}\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_a_guide_has_the_form_of_guides(path: Path) -> None:
    found = sections(path.read_text(encoding="utf-8"))
    assert [name for name in found if name in HEADINGS] == list(HEADINGS)
    for name in HEADINGS:
        assert found[name].strip(), name
    # What a person sees is an output that write_guides has written (test_guides.py compares it).
    assert ".. output: " in found["What to expect"] + found["Verify"]
    for name in ("Example", "Verify", "Teardown"):
        assert re.search(r"^ +\$ ", found[name], re.MULTILINE), f"{name} has no command"


def test_a_guide_of_another_form_would_be_seen() -> None:
    text = "T\n=\n\nRequirements\n------------\n\n- a\n\nVerify\n------\n\nb\n"
    assert sections(text) == {"Requirements": "\n- a\n\n", "Verify": "\nb\n"}


MAIN_MODULES = (
    "nvidia_driver", "containerd_runtime", "docker_runtime", "node_gpu_label", "nvidia_mig",
)  # fmt: skip
# Their keys are those of a kernel module, and of a handler of containerd.
FREE = {"module_options", "options"}


@pytest.mark.parametrize("name", MAIN_MODULES)
def test_a_main_module_has_examples_with_what_follows_and_no_free_dictionary(name: str) -> None:
    text = (REPOSITORY / "plugins" / "modules" / f"{name}.py").read_text(encoding="utf-8")
    documentation, examples = (
        yaml.safe_load(re.findall(rf'{key} = r"""(.*?)"""', text, re.DOTALL)[0])
        for key in ("DOCUMENTATION", "EXAMPLES")
    )
    own = [task for task in examples if f"kubegpu.nodes.{name}" in task]
    assert len(examples) >= 8 and len(own) >= 6
    # A result is used: a reboot, a restart, a conflict.
    registered = [task["register"] for task in own if "register" in task]
    assert any(result in str(task) for result in registered for task in examples if task not in own)
    options = documentation["options"]
    assert not [option for option in options if option.startswith("_")]
    free = {
        option for option, spec in options.items()
        if "dict" in (spec["type"], spec.get("elements")) and "suboptions" not in spec
    }  # fmt: skip
    assert free <= FREE


@pytest.mark.parametrize("page", ["diagnose", "verify", "troubleshooting"])
def test_findings_stand_on_their_own_page_alone(page: str) -> None:
    def rows(name: str) -> set[str]:
        text = (REPOSITORY / "docs" / f"{name}.md").read_text(encoding="utf-8")
        return set(re.findall(r"^\| `([a-z0-9_]+)` \|", text, re.MULTILINE))

    codes = set(re.findall(r"`([a-z0-9_]+)`", (REPOSITORY / "docs/findings.md").read_text()))
    assert len(codes) > 300
    assert not rows(page) & codes


@pytest.mark.parametrize("page", ["docs/driver.md", "docs/docsite/rst/guide_vgpu.rst"])
def test_the_licence_is_found_by_both_spellings(page: str) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8").partition("SPDX")[2]
    assert re.search(r"\blicence\b", text) and re.search(r"\(license\)", text)


def commands(text: str) -> list[str]:
    """Return the blocks of a page that are commands, without here-documents."""
    blocks = re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for block in blocks if not re.search(r"^-{3,}", block, re.MULTILINE)]


def unpastable(block: str) -> list[str]:
    """Return why a block cannot be pasted as a whole: what reads the next line, or two ways."""
    reasons = {
        r"^(?!.*-y)(sudo )?(apt|apt-get|dnf) .*install": "asks, and takes the next line as answer",
        r"> inventory$(.|\n)*> inventory$": "the second way replaces the first one",
        r"# *or\b": "two ways in one block",
        r"^ssh-keygen|^ssh-copy-id": "asks, and takes the next line as answer",
    }
    return [why for pattern, why in reasons.items() if re.search(pattern, block, re.MULTILINE)]


@pytest.mark.parametrize("page", ["README.md", "docs/start-machine.md", "docs/start-cluster.md"])
def test_the_blocks_of_the_start_pages_can_be_pasted(page: str) -> None:
    blocks = commands((REPOSITORY / page).read_text(encoding="utf-8"))
    assert len(blocks) > 1
    assert not {block: unpastable(block) for block in blocks if unpastable(block)}


def test_a_block_that_cannot_be_pasted_would_be_seen() -> None:
    assert unpastable("sudo apt update && sudo apt install python3-venv\npython3 -m venv x\n")
    assert unpastable("echo a > inventory\necho b > inventory\n")
    assert unpastable("install ./nodes\nbuild ./nodes    # or a tarball\n")
    assert not unpastable("sudo apt update && sudo apt install -y python3-venv\n")
