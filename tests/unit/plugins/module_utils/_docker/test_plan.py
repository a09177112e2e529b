# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker import plan as docker

PATH = "/usr/bin/nvidia-container-runtime"
NAME = "daemon.json"
NEW = (28, 5, 2)
WISH = docker.Request("nvidia", True, PATH, None, False, None)
GONE = replace(WISH, present=False)


def read(text, version=NEW):
    return docker.read(text, NAME, version)


def configured(text, wish=WISH, ledger=None):
    return docker.configure(read(text), wish, ledger or docker.Ledger())


def removed(edited, text=None, wish=GONE):
    document = edited.document if text is None else read(text)
    return docker.remove(document, wish, edited.ledger)


def data(edited):
    return json.loads(edited.document.text)


# -- what is in the file -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Docker version 20.10.24+dfsg1, build 5d6db84", (20, 10, 24)),
        ("Docker version 18.09.9, build 039a7df", (18, 9, 9)),
        ("Docker version 29.0.0-rc.1, build x", (29, 0, 0)),
        ("17.05.0-ce", (17, 5, 0)),
        ("28.5", (28, 5)),
        ("none", None),
    ],
)
def test_version(text, numbers):
    assert docker.parse_version(text) == numbers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"runtimes": {}, "runtimes": {}}', "runtimes is there twice"),
        ('{"runtimes": {"a": {}, "a": {}}}', "a is there twice"),
        ('{"features": {"cdi": true, "cdi": false}}', "cdi is there twice"),
        ('{"features": []}', "features is array"),
        ('{"default-runtime": 1}', "default-runtime is not a string"),
        ("7", "the file is number"),
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text, words):
    with pytest.raises(InputError) as caught:
        read(text)
    assert words in caught.value.cause
    assert f"{NAME}, line 1" in caught.value.cause
    assert caught.value.next_step


def test_repeated_key_that_is_none_of_ours_is_left_alone():
    text = '{"debug": true, "debug": false}'
    assert configured(text).document.text.startswith('{"debug": true, "debug": false, "runtimes"')


@pytest.mark.parametrize("key", ["path", "Path", "PATH"])
def test_keys_of_an_entry_are_found_as_go_finds_them(key):
    edited = configured(f'{{"runtimes": {{"nvidia": {{"{key}": "/old"}}}}}}')
    assert data(edited)["runtimes"]["nvidia"] == {key: PATH}


def test_key_written_in_two_ways_is_refused():
    with pytest.raises(InputError, match="path is there twice"):
        configured('{"runtimes": {"nvidia": {"path": "/a", "Path": "/b"}}}')


@pytest.mark.parametrize(
    ("entry", "arguments", "after"),
    [
        (None, None, {"path": PATH}),
        (None, ("--x",), {"path": PATH, "runtimeArgs": ["--x"]}),
        (None, (), {"path": PATH}),
        ("null", None, {"path": PATH}),
        ("{}", None, {"path": PATH}),
        ({"path": "/old", "runtimeArgs": ["-a"]}, None, {"path": PATH, "runtimeArgs": ["-a"]}),
        ({"path": PATH, "runtimeArgs": ["-a"]}, (), {"path": PATH, "runtimeArgs": []}),
        ({"path": PATH, "runtimeArgs": None}, (), {"path": PATH, "runtimeArgs": None}),
        ({"path": PATH, "more": 1}, ("b",), {"path": PATH, "more": 1, "runtimeArgs": ["b"]}),
        ({"runtimeArgs": []}, None, {"runtimeArgs": [], "path": PATH}),
    ],
)
def test_entry(entry, arguments, after):
    raw = entry if isinstance(entry, str) else json.dumps(entry)
    text = "{}" if entry is None else f'{{"runtimes": {{"nvidia": {raw}}}}}'
    edited = configured(text, replace(WISH, runtime_args=arguments))
    assert data(edited)["runtimes"]["nvidia"] == after
    # What it was before comes back, whatever it was.
    if edited.ledger.names:
        assert json.loads(removed(edited).document.text) == json.loads(text)
    else:
        assert edited.document.text == text


def test_runc_shim_gets_the_binary_as_its_option():
    text = '{"runtimes": {"nvidia": {"runtimeType": "io.containerd.runc.v2"}}}'
    entry = data(configured(text))["runtimes"]["nvidia"]
    assert entry == {"runtimeType": "io.containerd.runc.v2", "options": {"BinaryName": PATH}}
    assert removed(configured(text)).document.text == text


def test_other_shim_is_not_made_nvidias():
    text = '{"runtimes": {"nvidia": {"runtimeType": "io.containerd.kata.v2"}}}'
    with pytest.raises(InputError, match=r"io\.containerd\.kata\.v2"):
        configured(text)


def test_shim_excludes_arguments():
    text = '{"runtimes": {"nvidia": {"runtimeType": "io.containerd.runc.v2"}}}'
    with pytest.raises(InputError, match="excludes runtimeArgs"):
        configured(text, replace(WISH, runtime_args=("-a",)))


@pytest.mark.parametrize("text", ["", "null", "{}", '{"a": 1}', '{"features": {"b": false}}'])
def test_configuring_twice_changes_nothing_more(text):
    wish = replace(WISH, set_default=True, cdi=True, runtime_args=("-a",))
    once = configured(text, wish)
    twice = docker.configure(once.document, wish, once.ledger)
    assert twice.document.text == once.document.text
    assert twice.ledger == once.ledger
    assert twice.reasons == ()


def test_default_is_taken_back_when_not_wished_for_any_more_and_only_if_ours():
    once = configured('{"default-runtime": "runc"}', replace(WISH, set_default=True))
    back = docker.configure(once.document, WISH, once.ledger)
    assert data(back)["default-runtime"] == "runc"
    assert "default-runtime" in data(configured('{"default-runtime": "nvidia"}'))


def test_cdi_off_is_not_written_where_nothing_switches_it_on():
    assert "features" not in data(configured("{}", replace(WISH, cdi=False)))
    edited = configured('{"features": {"cdi": true}}', replace(WISH, cdi=False))
    assert data(edited)["features"] == {"cdi": False}


# -- taking out ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "goes"),
    [
        ({"path": PATH}, True),
        ({"path": PATH, "runtimeArgs": []}, True),
        ({"path": PATH, "runtimeArgs": ["-a"]}, False),
        ({"path": "/other"}, False),
        ({"path": PATH, "options": {}}, False),
    ],
)
def test_without_a_record_only_what_equals_ours_goes(entry, goes):
    text = json.dumps({"runtimes": {"nvidia": entry}, "default-runtime": "nvidia"})
    after = docker.remove(read(text), GONE, docker.Ledger())
    assert data(after) == ({"runtimes": {}} if goes else json.loads(text))
    assert after.reasons


def test_entry_that_somebody_changed_since_stays_and_is_said():
    once = configured("{}")
    text = once.document.text.replace(f'"{PATH}"', f'"{PATH}", "runtimeArgs": ["-x"]')
    after = removed(once, text)
    assert data(after)["runtimes"]["nvidia"]["runtimeArgs"] == ["-x"]
    assert "runtimes.nvidia was changed by somebody since: kept" in after.reasons


def test_entry_that_somebody_only_formatted_anew_goes():
    once = configured('{"a": 1}')
    text = json.dumps(json.loads(once.document.text), indent=7)
    assert data(removed(once, text)) == {"a": 1}


def test_default_never_points_at_a_runtime_that_is_gone():
    before = '{"default-runtime": "kata", "runtimes": {"kata": {"path": "/k"}}}'
    once = configured(before, replace(WISH, set_default=True))
    text = once.document.delete(["runtimes", "kata"]).text
    assert data(removed(once, text)) == {"runtimes": {}}
    # Somebody made ours the default since.
    once = configured("{}")
    text = once.document.set(["default-runtime"], '"nvidia"').text
    assert data(removed(once, text)) == {}


@pytest.mark.parametrize("first", ["a", "b"])
def test_two_names_in_either_order(first):
    before = '{"default-runtime": "runc", "x": 1}'
    wish = {n: replace(WISH, name=n, set_default=True, cdi=True) for n in "ab"}
    edited = configured(before, wish["a"])
    edited = docker.configure(edited.document, wish["b"], edited.ledger)
    assert data(edited)["default-runtime"] == "b"
    for name in (first, "b" if first == "a" else "a"):
        edited = removed(edited, wish=replace(wish[name], present=False))
        assert data(edited).get("default-runtime") != name
        if name == first:
            assert data(edited)["features"] == {"cdi": True}, "the other name needs it"
    assert edited.document.text == before
    assert edited.ledger == docker.Ledger()


def test_ledger_round_trip():
    ledger = configured("null", replace(WISH, set_default=True)).ledger
    assert docker.Ledger.from_json(json.loads(json.dumps(ledger.to_json()))) == ledger


_EXTRA = st.dictionaries(
    st.sampled_from(["debug", "log-opts", "dns", "mtu"]),
    st.one_of(st.booleans(), st.integers(0, 2**63 - 1), st.just({"k": [1, {"v": None}]})),
)
_RUNTIMES = st.one_of(
    st.none(),
    st.dictionaries(
        st.sampled_from(["kata", "nvidia", "crun"]),
        st.sampled_from([{"path": "/x"}, {"path": PATH}, {"path": "/y", "runtimeArgs": ["-a"]}]),
    ),
)


@given(
    _EXTRA,
    _RUNTIMES,
    st.booleans(),
    st.sampled_from([None, True]),
    st.sampled_from([None, 2, "\t"]),
    st.booleans(),
)
def test_remove_after_configure_is_the_very_text(extra, runtimes, default, cdi, indent, blank):
    text = json.dumps(
        {**extra, "runtimes": runtimes} if runtimes is not None else extra, indent=indent
    )
    text = "{ }\n" if blank else text
    edited = configured(text, replace(WISH, set_default=default, cdi=cdi))
    docker.check_result(edited.document)
    docker.verify(read(text), edited.document, "nvidia")
    if edited.ledger.names:
        assert removed(edited).document.text == text


# -- the running dockerd -----------------------------------------------------------------------


INFO = docker.Info({"runc": {"path": "runc"}, "nvidia": {"path": PATH}}, "runc", "28.5.2")
FILE = json.dumps({"runtimes": {"nvidia": {"path": PATH}}})


def needs(text=FILE, wish=WISH, version=NEW, **running):
    return docker.needs(read(text), wish, docker.Running(**{"active": True, **running}), version)


def test_dockerd_that_has_it_all_needs_nothing():
    assert needs(info=INFO, hook_path="/h") == docker.Needs()


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (replace(INFO, runtimes={}), "does not know the runtime nvidia"),
        (replace(INFO, runtimes={"nvidia": {"path": "/b"}}), "has /b for the runtime nvidia"),
        (
            replace(INFO, runtimes={"nvidia": {"path": PATH, "runtimeArgs": ["-a"]}}),
            "other arguments",
        ),
        (replace(INFO, runtimes={**INFO.runtimes, "old": {}}), "still has the runtime old"),
        (replace(INFO, default_runtime="nvidia"), "default runtime is nvidia"),
    ],
)
def test_difference_between_file_and_dockerd_needs_a_reload(info, words):
    wanted = needs(info=info)
    assert words in "".join(wanted.reload)
    assert wanted.restart == ()


def test_flags_of_the_command_line_are_no_difference():
    info = replace(INFO, runtimes={**INFO.runtimes, "x": {}}, default_runtime="x")
    given_flags = docker.flags(["dockerd", "--add-runtime=x=/x", "--default-runtime", "x"])
    assert needs(info=info, flags=given_flags).reload == ()


def test_stopped_dockerd_needs_nothing():
    assert needs(active=False, hook_path="/h", started_before_hook=True) == docker.Needs()


def test_hook_installed_after_the_start_needs_a_restart():
    wanted = needs(info=INFO, hook_path="/h", started_before_hook=True)
    assert "/h" in wanted.restart[0]


@pytest.mark.parametrize("version", [(18, 9, 9), (17, 5, 0), (1, 13, 1)])
def test_scenario_7_docker_before_19_03_is_told_that_gpus_does_not_exist(version):
    info = replace(INFO, version=".".join(map(str, version)))
    wanted = needs(info=info, version=version, hook_path="/h", started_before_hook=True)
    assert wanted.restart == ()
    assert "has no --gpus (it came with 19.03)" in wanted.notes[0]
    assert "--runtime=nvidia" in wanted.notes[0]


def test_docker_19_03_is_not_told_so():
    assert needs(info=replace(INFO, version="19.03.15"), hook_path="/h").notes == ()


def test_version_of_the_running_dockerd_counts_not_of_the_installed():
    wanted = needs(info=replace(INFO, version="18.09.9"), version=NEW)
    assert "18.09.9" in wanted.notes[0]


def test_dockerd_that_does_not_answer_is_reloaded_only_for_a_change():
    assert needs(hook_path="/h", file_changes=False).reload == ()
    wanted = needs(hook_path="/h", file_changes=True)
    assert wanted.reload
    assert "cannot be told" in wanted.notes[0]


@pytest.mark.parametrize(
    ("text", "version", "directories", "restart"),
    [
        ('{"features": {"cdi": true}}', "26.1.5", (), True),
        ('{"features": {"cdi": true}}', "26.1.5", ("/etc/cdi",), False),
        ("{}", "26.1.5", (), False),
        ("{}", "26.1.5", ("/etc/cdi",), True),
        ("{}", "28.5.2", ("/etc/cdi",), False),
        ('{"features": {"cdi": false}}', "28.5.2", ("/etc/cdi",), True),
        ('{"features": {"cdi": true}}', "28.5.2", ("/etc/cdi",), False),
        ("{}", "28.1.0", (), False),
        ("{}", "28.1.0", ("/etc/cdi",), False),
        ('{"features": {"cdi": true}}', "20.10.24", None, False),
        ('{"features": {"cdi": true}, "cdi-spec-dirs": [""]}', "26.1.5", (), False),
    ],
)
def test_cdi_is_compared_with_what_dockerd_was_started_with(text, version, directories, restart):
    info = replace(INFO, version=version, cdi_directories=directories)
    assert bool(needs(text, info=info, hook_path="/h").restart) is restart


@pytest.mark.parametrize(
    ("live", "containers", "idle"),
    [(True, 5, True), (False, 0, True), (False, 2, False), (None, None, None), (None, 0, True)],
)
def test_idle(live, containers, idle):
    info = replace(INFO, live_restore=live, containers_running=containers)
    assert info.idle is idle


@pytest.mark.parametrize("answer", [None, [], {}, {"Runtimes": None}, {"message": "no"}])
def test_answer_that_is_none(answer):
    assert docker.Info.from_api(answer) is None


def test_transition_names_what_a_reload_would_not_take_back():
    info = replace(INFO, default_runtime="nvidia")
    running = docker.Running(active=True, info=info)
    between = docker.transition(read('{"debug": true}'), info, running)
    assert json.loads(between.text) == {
        "debug": True,
        "runtimes": {},
        "default-runtime": "runc",
    }
    assert docker.transition(read(FILE), INFO, running) is None, "a plain reload does it"
    # 20.10 dies of this file in a plain reload, when its default is nvidia.
    between = docker.transition(read('{"runtimes": {"m": {"path": "/m"}}}'), info, running)
    assert json.loads(between.text)["default-runtime"] == "runc"
    flagged = replace(running, flags={"default-runtime": ("x",)})
    assert docker.transition(read("{}"), info, flagged) is None


def test_default_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="default-runtime is zz"):
        docker.check_result(read('{"default-runtime": "zz"}'))
    for good in ("runc", "io.containerd.runc.v2", "/usr/bin/shim"):
        docker.check_result(read(json.dumps({"default-runtime": good})))


# -- the unit ----------------------------------------------------------------------------------

UNIT = """# /lib/systemd/system/docker.service
[Service]
EnvironmentFile=-/etc/default/docker
ExecStart=/usr/sbin/dockerd -H fd:// \\
    --default-runtime=runc $DOCKER_OPTS

# /etc/systemd/system/docker.service.d/10-flags.conf
[Service]
Environment="MORE=--add-runtime=a=/a"
ExecStart=
ExecStart=/usr/sbin/dockerd --feature cdi=true
"""


def test_unit_names_the_file_that_gives_each_flag():
    sources, files = docker.unit_sources(UNIT)
    assert files == ["/etc/default/docker"]
    drop_in = "/etc/systemd/system/docker.service.d/10-flags.conf"
    assert [source.where for source in sources] == [drop_in, drop_in]
    assert docker.flags(sources[0].arguments) == {"feature": ("cdi=true",)}
    assert docker.flags(sources[1].arguments) == {"add-runtime": ("a=/a",)}


def test_command_that_a_drop_in_takes_back_does_not_count():
    sources, _files = docker.unit_sources(UNIT)
    docker.check_flags(read('{"default-runtime": "runc"}'), NAME, NAME, sources)


def test_environment_file_is_read_without_its_comments():
    text = '# DOCKER_OPTS="--default-runtime=a"\nDOCKER_OPTS="-H x --add-runtime n=/n"\n'
    source = docker.environment_source("/etc/default/docker", text)
    assert docker.flags(source.arguments) == {"add-runtime": ("n=/n",)}


@pytest.mark.parametrize(
    ("flag", "text", "conflict"),
    [
        ("--default-runtime=x", '{"default-runtime": "y"}', True),
        ("--default-runtime=x", FILE, False),
        ("--add-runtime=x=/x", FILE, True),
        ("--add-runtime=x=/x", '{"runtimes": null}', False),
        ("--feature=a=true", '{"features": {}}', True),
        ("--feature=a=true", FILE, False),
        ("--log-level=debug", '{"log-level": "info"}', False),
    ],
)
def test_conflict(flag, text, conflict):
    source = docker.FlagSource("/u/docker.service", ("dockerd", flag))
    if not conflict:
        docker.check_flags(read(text), NAME, NAME, [source])
        return
    with pytest.raises(InputError) as caught:
        docker.check_flags(read(text), NAME, NAME, [source])
    name, _equals, value = flag.partition("=")
    assert caught.value.evidence == f"/u/docker.service: {name} {value}"


def test_other_configuration_file_is_named():
    source = docker.FlagSource("/u", ("dockerd", "--config-file", "/etc/other.json"))
    with pytest.raises(InputError, match=r"Set config_path: /etc/other\.json"):
        docker.check_flags(read("{}"), "/etc/docker/daemon.json", "/real.json", [source])
    docker.check_flags(read("{}"), "/link.json", "/etc/other.json", [source])
