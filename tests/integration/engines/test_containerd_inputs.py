# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inputs of facts/runtimes.md that concern containerd, by number, judged by the real one."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.integration.engines.containerd_inputs import catalogue
from tests.integration.engines.containerd_inputs.catalogue import CRI, LOADS, RUNC, Input
from tests.integration.engines.containerd_inputs.judge import (
    CONTAINERDS,
    Place,
    cri,
    default,
    given,
    judge,
    runtimes,
)

CASES = list(catalogue.cases())
BY_NAME = {item.name: item for item in catalogue.INPUTS}
PATH = "/usr/bin/nvidia-container-runtime"


# The default tier edits all inputs, and restores those that are written in a way of their own.
# Another program edits the first two in between, too.
EDITED = ("runc_with_systemd_cgroup", "comments_and_number_formats")
RESTORED = (*EDITED, "no_file", "carriage_returns", "cri_disabled_among_others", "inline_tables")
OTHER_INPUTS = pytest.mark.full(why="another input; the test of all inputs meets it")


def identify(case):
    item, containerd, version = case
    return f"{item.name}-v{version}-{containerd}"


def versions(*names, config_versions=(1, 2, 3)):
    """Return cases of the named inputs."""
    return pytest.mark.parametrize(
        "case",
        [
            case
            for case in CASES
            if case[0].name in names and (case[0].root is None or case[2] in config_versions)
        ],
        ids=identify,
    )


@pytest.fixture
def place(case, tmp_path):
    item, containerd, version = case
    made = Place(tmp_path, containerd)
    made.write(item, version)
    return made


@pytest.fixture
def bare(containerd, tmp_path):
    made = Place(tmp_path, containerd)
    made.imports.mkdir(parents=True)
    return made


on_each = pytest.mark.parametrize("containerd", CONTAINERDS)
on_old = pytest.mark.parametrize("containerd", ["1.6", "1.7"])
on_new = pytest.mark.parametrize("containerd", ["2.1"])


def newest_format(containerd):
    return LOADS[containerd][-1]


# -- every input -------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=identify)
def test_every_input_gets_the_handler_and_nothing_else(place):
    before = place.dump()
    first = place.ok()
    assert first["changed"]
    judge(before, place.dump())
    again = place.run()
    assert not again["changed"]
    assert again["diff"] == []


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, id=identify(case), marks=() if case[0].name in RESTORED else OTHER_INPUTS
        )
        for case in CASES
    ],
)
def test_every_input_comes_back_to_the_byte(place):
    before = place.snapshot()
    place.run(set_default=True, runtime_path="/bin/true")
    assert place.snapshot() != before
    assert place.ok(state="absent")["changed"]
    assert place.snapshot() == before
    assert not place.state.parent.exists()
    assert not place.run(state="absent")["changed"]
    assert place.snapshot() == before


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=identify(case), marks=() if case[0].name in EDITED else OTHER_INPUTS)
        for case in CASES
        if case[0].root is not None
    ],
)
def test_a_foreign_edit_in_between_stays(place):
    original = place.config.read_bytes()
    place.run(set_default=True, runtime_path="/bin/true")
    newline = b"\r\n" if b"\r\n" in original else b"\n"
    edit = newline + b"[proxy_plugins.mine]" + newline + b'  type = "snapshot"' + newline
    present = place.config.read_bytes()
    place.config.write_bytes(present + edit)
    place.run(state="absent")
    left = place.config.read_bytes()
    assert left.endswith(edit)
    data = tomllib.loads(left.decode("utf-8-sig").replace("\r\n", "\n"))
    assert data.pop("proxy_plugins") == {"mine": {"type": "snapshot"}}
    assert data == tomllib.loads(original.decode("utf-8-sig").replace("\r\n", "\n"))
    joined = b"" if original.endswith(newline) or not original else newline
    assert left in (original + joined + edit, original + edit)
    assert not place.run(state="absent")["changed"]


# -- by number ---------------------------------------------------------------------------------


@versions("no_file", "empty_file", "no_explicit_runc", "other_settings_only")
def test_input_01_no_explicit_runc(place):
    place.ok()
    assert set(runtimes(place.dump())) == {"runc", "nvidia"}
    assert runtimes(place.dump())["runc"]["runtime_type"] == "io.containerd.runc.v2"


@on_each
def test_input_01_file_without_runc_left_by_another_tool_is_repaired(bare, containerd):
    version = newest_format(containerd)
    text = "@VERSION@[@CRI@.containerd.runtimes.nvidia]\n" + 'runtime_type = "x"\n'
    bare.config.write_text(catalogue.fill(text, version, ""))
    bare.ok()
    assert runtimes(bare.dump())["runc"]["runtime_type"] == "io.containerd.runc.v2"
    assert runtimes(bare.dump())["nvidia"]["runtime_type"] == "io.containerd.runc.v2"


@versions("imported_registry_and_runc", config_versions=(2,))
def test_input_02_settings_in_imported_files_are_not_wiped(place):
    before = cri(place.dump())
    place.ok()
    after = cri(place.dump())
    assert after["enable_selinux"] is before["enable_selinux"] is True
    assert after["cni"] == before["cni"]
    assert given(runtimes(place.dump())["nvidia"]["options"])["systemdcgroup"] is True


@pytest.mark.parametrize("layout", ["auto", "in_place"])
@on_each
def test_input_03_later_edits_of_the_root_file_take_effect(bare, containerd, layout):
    version = newest_format(containerd)
    text = '@VERSION@imports = ["@IMPORTS@/*.toml"]\n' + RUNC
    bare.config.write_text(catalogue.fill(text, version, str(bare.imports)))
    bare.ok(layout=layout)
    assert bare.drop_in.exists() == (layout == "auto" and containerd == "2.1")
    edited = bare.config.read_text().replace("privileged_without_host_devices = true", "")
    bare.config.write_text(edited + f"\n[{CRI[version]}]\n  max_container_log_line_size = 77\n")
    assert cri(bare.dump())["max_container_log_line_size"] == 77
    assert runtimes(bare.dump())["runc"]["privileged_without_host_devices"] is False
    assert "nvidia" in runtimes(bare.dump())


@versions("other_settings_only", "runc_with_systemd_cgroup", config_versions=(1,))
def test_input_04_versionless_file_has_effect(place):
    place.ok()
    assert "nvidia" in runtimes(place.dump())
    assert "version" not in place.config.read_text()


@versions("cri_disabled_by_docker_package", "cri_disabled_among_others")
def test_input_04_disabled_cri_is_reported_and_enabled_only_on_request(place):
    answer = place.ok()
    assert any("CRI is disabled" in reason for reason in answer["reasons"])
    text = place.config.read_text()
    assert re.search('"(io.containerd.grpc.v1.)?cri"', text)
    answer = place.ok(enable_cri=True)
    assert answer["changed"]
    data = tomllib.loads(place.config.read_text())
    assert not {"cri", "io.containerd.grpc.v1.cri"} & set(data["disabled_plugins"])
    assert len(data["disabled_plugins"]) == text.count("zfs")
    assert not place.ok(enable_cri=True)["changed"]
    assert "nvidia" in runtimes(place.dump())


@versions("comments_and_number_formats")
def test_input_05_only_lines_are_added(place):
    before = place.config.read_text().splitlines()
    place.ok()
    after = iter(place.config.read_text().splitlines())
    assert all(line in after for line in before)


@on_new
def test_input_05_one_imports_line_is_added(bare, containerd):
    text = "# mine\nversion = 3\noom_score = -0 # odd\n\n[grpc]\n  gid = 0x0\n"
    bare.config.write_text(text)
    before = bare.dump()
    bare.ok(layout="drop_in")
    judge(before, bare.dump())
    lines = bare.config.read_text().splitlines()
    added = f'imports = ["{bare.drop_in}"]'
    assert [line for line in lines if line != added] == text.splitlines()
    bare.ok(state="absent")
    assert bare.config.read_text() == text
    assert not bare.drop_in.exists()


@on_each
def test_input_07_empty_and_relative_paths_are_refused(bare, containerd):
    for option in ("drop_in_path", "config_path", "runtime_path"):
        for path in ("", "etc/", "relative.toml"):
            # Ansible itself makes no absolute path of these.
            answer = bare.check(**{option: path})
            assert answer.get("failed"), (option, path)
            assert option in answer["msg"]
    assert not bare.config.exists()


@versions("kata_is_default")
def test_input_09_kata_default_is_not_inherited(place):
    place.ok()
    handler = runtimes(place.dump())["nvidia"]
    assert handler["runtime_type"] == "io.containerd.runc.v2"
    assert "configpath" not in given(handler["options"])
    if tomllib.loads(place.config.read_text()).get("version") or place.containerd != "2.1":
        # containerd 2 ignores plugins.cri of a file without a version.
        assert default(place.dump()) == "kata"


CRUN_IS_DEFAULT = (
    '@VERSION@[@CRI@.containerd]\ndefault_runtime_name = "crun"\n'
    '[@CRI@.containerd.runtimes.crun]\nruntime_type = "io.containerd.runc.v2"\n'
    '[@CRI@.containerd.runtimes.crun.options]\nBinaryName = "/usr/bin/crun"\nSystemdCgroup = true\n'
)


@on_each
@pytest.mark.parametrize(
    "runc", ["", '[@CRI@.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n']
)
def test_options_are_those_of_the_default_runtime(bare, containerd, runc):
    """nvidia-ctk 1.20.0 takes them from there too; the handler had runc's cgroup driver once."""
    text = catalogue.fill(CRUN_IS_DEFAULT + runc, newest_format(containerd), "")
    bare.config.write_text(text)
    before = bare.dump()
    answer = bare.ok()
    judge(before, bare.dump())
    assert given(runtimes(bare.dump())["nvidia"]["options"])["systemdcgroup"] is True
    if runc or containerd == "2.1":
        assert any("runc has others: systemdcgroup" in reason for reason in answer["reasons"])
    # Our own default hides no other: the one from before us counts, also for a second handler.
    assert bare.ok(set_default=True, runtime_path="/bin/true")["changed"]
    assert bare.ok(name="second")["changed"]
    for name in ("nvidia", "second"):
        assert given(runtimes(bare.dump())[name]["options"])["systemdcgroup"] is True
    bare.ok(name="second", state="absent")
    bare.ok(state="absent")
    assert bare.config.read_text() == text


TYPELESS = "@VERSION@[@CRI@.containerd.runtimes.runc.options]\nSystemdCgroup = true\n"
EMPTY_TYPE = '@VERSION@[@CRI@.containerd.runtimes.runc]\nruntime_type = ""\n'
WITHOUT_A_TYPE = pytest.mark.full(why="the type is not there instead of empty")


@pytest.mark.parametrize(
    ("containerd", "text"),
    [
        pytest.param("1.6", TYPELESS, marks=WITHOUT_A_TYPE),
        pytest.param("1.7", TYPELESS, marks=WITHOUT_A_TYPE),
        ("1.6", EMPTY_TYPE),
        ("1.7", EMPTY_TYPE),
        ("2.1", EMPTY_TYPE),
    ],
)
def test_runc_without_a_type_is_named_or_completed(tmp_path, containerd, text):
    bare = Place(tmp_path, containerd)
    bare.imports.mkdir(parents=True)
    text = catalogue.fill(text, newest_format(containerd), "")
    bare.config.write_text(text)
    assert runtimes(bare.dump())["runc"]["runtime_type"] == ""
    answer = bare.module()
    assert answer["failed"] and "runc has no runtime_type" in answer["cause"]
    assert "Report this" not in answer["msg"] and "complete_runc" in answer["next_step"]
    assert bare.config.read_text() == text
    bare.ok(complete_runc=True)
    assert runtimes(bare.dump())["runc"]["runtime_type"] == "io.containerd.runc.v2"
    assert not bare.ok(complete_runc=True)["changed"]
    # What is complete now needs no option, and a second handler nothing else.
    assert bare.ok(name="second")["changed"]
    bare.ok(name="second", state="absent")
    bare.ok(state="absent")
    assert bare.config.read_text() == text


@on_each
def test_runc_that_was_completed_can_go_by_its_lines(bare, containerd):
    text = catalogue.fill(EMPTY_TYPE, newest_format(containerd), "")
    bare.config.write_text(text)
    bare.ok(complete_runc=True)
    with bare.config.open("a") as handle:
        handle.write("# seen\n")
    bare.ok(state="absent")
    assert bare.config.read_text() == text + "# seen\n"


@versions("binary_name_in_two_cases", "handler_with_binary_name_in_two_cases")
def test_input_10_binary_name_is_there_once(place):
    place.ok()
    options = runtimes(place.dump())["nvidia"]["options"]
    assert [value for key, value in options.items() if key.lower() == "binaryname"] == [PATH]


@versions("default_left_behind", config_versions=(2, 3))
def test_input_11_default_left_behind_means_the_same_everywhere(place):
    answer = place.ok()
    assert default(place.dump()) == "nvidia"
    assert answer["default_runtime"] == "nvidia"
    assert any("left alone" in reason for reason in answer["reasons"])


@on_each
def test_input_11_default_that_does_not_exist_is_reported(bare, containerd):
    version = newest_format(containerd)
    text = '@VERSION@[@CRI@.containerd]\ndefault_runtime_name = "gone"\n' + RUNC
    bare.config.write_text(catalogue.fill(text, version, ""))
    answer = bare.ok()
    assert any("'gone' does not exist" in reason for reason in answer["reasons"])
    assert default(bare.dump()) == "gone"


@on_each
def test_input_12_removal_brings_back_the_default_that_was(bare, containerd):
    version = newest_format(containerd)
    text = (
        '@VERSION@[@CRI@.containerd]\ndefault_runtime_name = "crun"\n'
        '[@CRI@.containerd.runtimes.crun]\nruntime_type = "io.containerd.runc.v2"\n'
        '[@CRI@.containerd.runtimes.crun.options]\nBinaryName = "/usr/bin/crun"\n' + RUNC
    )
    bare.config.write_text(catalogue.fill(text, version, ""))
    bare.ok(set_default=True, runtime_path="/bin/true")
    assert default(bare.dump()) == "nvidia"
    # Somebody edits, so that the bytes cannot come back as a whole.
    with bare.config.open("a") as handle:
        handle.write("# seen\n")
    bare.ok(state="absent")
    assert default(bare.dump()) == "crun"
    assert set(runtimes(bare.dump())) == {"crun", "runc"}
    assert bare.config.read_text() == catalogue.fill(text, version, "") + "# seen\n"


@on_each
def test_input_12_set_default_false_takes_back_only_our_default(bare, containerd):
    version = newest_format(containerd)
    bare.config.write_text(catalogue.fill("@VERSION@" + RUNC, version, ""))
    bare.ok()
    without = bare.config.read_text()
    bare.ok(set_default=True, runtime_path="/bin/true")
    assert default(bare.dump()) == "nvidia"
    bare.ok(set_default=False)
    assert default(bare.dump()) == "runc"
    assert tomllib.loads(bare.config.read_text()) == tomllib.loads(without)


@on_each
def test_input_12_without_a_record_only_what_equals_ours_goes(bare, containerd):
    version = newest_format(containerd)
    text = catalogue.fill("@VERSION@" + RUNC, version, "")
    bare.config.write_text(text)
    bare.ok()
    bare.state.unlink()
    assert bare.ok(state="absent")["changed"]
    assert bare.config.read_text() == text
    bare.ok()
    bare.state.unlink()
    other = bare.config.read_text().replace(PATH, "/opt/other")
    bare.config.write_text(other)
    answer = bare.ok(state="absent")
    assert not answer["changed"]
    assert any("is kept" in reason for reason in answer["reasons"])
    assert bare.config.read_text() == other


@pytest.mark.parametrize(
    ("containerd", "version"),
    [(containerd, version) for containerd in LOADS for version in LOADS[containerd]],
)
def test_input_13_enable_cdi_lands_where_it_counts(tmp_path, containerd, version):
    place = Place(tmp_path, containerd)
    place.write(Input("cdi", "@VERSION@" + RUNC), version)
    answer = place.ok(cdi=True)
    if containerd == "1.6":
        assert any("cdi is ignored" in reason for reason in answer["reasons"])
        assert "cdi" not in place.config.read_text()
    else:
        assert cri(place.dump())["enable_cdi"] is True
        # It is the default of containerd 2, and so not written there.
        assert ("enable_cdi" in place.config.read_text()) == (containerd == "1.7")
        assert place.ok(cdi=False)["changed"]
        assert cri(place.dump())["enable_cdi"] is False
    assert not place.ok(cdi=containerd == "1.6")["changed"]


@on_new
def test_input_14_drop_in_is_of_the_root_files_version(bare, containerd):
    for version in (2, 3):
        text = '@VERSION@imports = ["@IMPORTS@/*.toml"]\n' + RUNC
        bare.config.write_text(catalogue.fill(text, version, str(bare.imports)))
        before = bare.dump()
        bare.ok()
        assert tomllib.loads(bare.drop_in.read_text())["version"] == version
        judge(before, bare.dump())
        bare.ok(state="absent")


@on_old
def test_input_14_version_3_is_refused_where_it_cannot_be_loaded(bare, containerd):
    bare.config.write_text("version = 3\n")
    answer = bare.module()
    assert answer["failed"]
    assert bare.config.read_text() == "version = 3\n"


@on_each
def test_input_14_unknown_version_is_refused(bare, containerd):
    bare.config.write_text("version = 4\n")
    answer = bare.module(validate=False)
    assert answer["failed"]
    assert "version 4" in answer["cause"]
    assert bare.config.read_text() == "version = 4\n"


@on_old
def test_input_14_drop_in_that_would_wipe_cri_settings_is_refused(bare, containerd):
    bare.config.write_text(catalogue.fill("@VERSION@" + RUNC, 2, ""))
    before = bare.snapshot()
    answer = bare.module(layout="drop_in")
    assert answer["failed"]
    assert "in_place" in answer["next_step"]
    assert bare.snapshot() == before


@pytest.mark.parametrize(
    "order",
    [
        "nvidia nvidia-cdi",
        pytest.param("nvidia-cdi nvidia", marks=pytest.mark.full(why="the other order")),
    ],
)
@versions("no_file", "runc_with_systemd_cgroup", "comments_and_number_formats")
def test_input_15_two_runtimes(place, order):
    before = place.snapshot()
    seen = place.dump()
    place.ok(name="nvidia")
    place.ok(name="nvidia-cdi", runtime_path="/usr/bin/nvidia-container-runtime.cdi")
    dump = place.dump()
    assert set(runtimes(dump)) - set(runtimes(seen)) == {"nvidia", "nvidia-cdi"}
    assert not place.ok(name="nvidia")["changed"]
    for name in order.split():
        assert place.ok(name=name, state="absent")["changed"]
    assert place.snapshot() == before
    assert not place.state.exists()


@on_each
@pytest.mark.parametrize("name", ["", "runc", "a b", 'x"]', "../x", "-x", "x" * 64])
def test_input_15_names_are_validated(bare, containerd, name):
    answer = bare.module(name=name)
    assert answer["failed"]
    assert not bare.config.exists()


# Input 16, the template of k3s and RKE2: test_containerd_flavours.py.


# -- beside the numbered ones --------------------------------------------------------------------


@versions("registry_password")
def test_no_password_in_any_answer(place):
    answer = place.ok()
    assert "correct horse" not in str(answer)
    assert "***" in answer["diff"][0]["before"]


@on_new
def test_file_that_containerd_cannot_load_is_refused(bare, containerd):
    """containerd 2.1 takes no byte order mark, so such a node is broken already."""
    text = "\ufeffversion = 3\n"
    bare.config.write_text(text, encoding="utf-8")
    answer = bare.module()
    assert answer["failed"]
    assert "as it is" in answer["cause"]
    assert bare.config.read_text(encoding="utf-8") == text


@on_each
def test_symlinked_file_is_followed(bare, containerd):
    real = bare.folder / "elsewhere.toml"
    real.write_text(catalogue.fill("@VERSION@" + RUNC, newest_format(containerd), ""))
    original = real.read_bytes()
    bare.config.symlink_to(real)
    bare.ok()
    assert bare.config.is_symlink()
    assert b"nvidia" in real.read_bytes()
    bare.ok(state="absent")
    assert bare.config.is_symlink()
    assert real.read_bytes() == original


@on_each
def test_further_options(bare, containerd):
    bare.config.write_text(catalogue.fill("@VERSION@" + RUNC, newest_format(containerd), ""))
    options = {"SystemdCgroup": False, "NoNewKeyring": True, "Root": "/run/nvidia"}
    bare.ok(options=options)
    found = given(runtimes(bare.dump())["nvidia"]["options"])
    assert found == {"binaryname": PATH, "nonewkeyring": True, "root": "/run/nvidia"}
    assert not bare.ok(options=options)["changed"]
