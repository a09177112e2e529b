# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be shown: every form in which a secret was seen to pass, and what has to stay."""

from __future__ import annotations

import time

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import (
    MARK,
    addresses,
    first_words,
    is_secret,
    may_name_secret,
    redact,
    redact_data,
    redact_items,
    secrets,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact_lines import (
    redact_lines,
    redact_yaml,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.json_edit import parse
from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.json_edit import (
    redact as redact_json,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.toml_redact import (
    redact as redact_toml,
)

PW = "hunter2"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://svc:hunter2@proxy:3128/a@b", "http://***@proxy:3128/a@b"),
        # Go (net/url) and Python (urllib) take the last @ of the authority.
        ("http://u:p@hunter2@h/x", "http://***@h/x"),
        ("https://0123456789hunter2@h", "https://***@h"),
        (r"http:\/\/svc:hunter2@proxy", r"http:\/\/***@proxy"),
        (r"http://svc:hunter2\u0040proxy", r"http://***\u0040proxy"),
        # No library reads this one, but people write it.
        ("http://svc:hun/hunter2@proxy:3128", "http://***@proxy:3128"),
        ("http://svc:1hunter2/x@proxy", "http://***@proxy"),
        ("http://svc:123456/hunter2@proxy", "http://***@proxy"),
        ("http://[::1]:1hunter2/x@proxy", "http://***@proxy"),
        ("http://u:?hunter2@h/x", "http://***@h/x"),
        # Go's httpproxy takes an address without scheme.
        ("svc:hunter2@proxy:3128", "***@proxy:3128"),
        ("HTTP_PROXY=svc:hunter2@proxy:3128", "HTTP_PROXY=***@proxy:3128"),
        ("https://h/x.run?sig=hunter2", "https://h/x.run?***"),
        ("https://h/repo?hunter2", "https://h/repo?***"),
        ("https://h/x?url=http://y/z&token=hunter2", "https://h/x?***"),
        ("a http://a:hunter2@b,http://c:hunter2@d e", "a http://***@b,http://***@d e"),
        ("socks5h://u:hunter2@[::1]:1080", "socks5h://***@[::1]:1080"),
    ],
)
def test_users_passwords_and_queries_of_addresses_are_covered(text, shown):
    assert addresses(text) == shown
    assert addresses(text, True) == shown
    assert redact(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("token: abcd1234efgh", "token: ***"),
        ("passwd: X", "passwd: ***"),
        ("  password: hunter2, user: x", "  password: ***, user: x"),
        ("password: hunter2 for bob", "password: *** for bob"),
        ("secret=X", "secret=***"),
        ('password: "correct hunter2"', "password: ***"),
        ("API_TOKEN: qwertz", "API_TOKEN: ***"),
        ("Error: token: abc12345def was rejected", "Error: token: *** was rejected"),
    ],
)
def test_a_value_after_a_colon_is_covered_without_quotes(text, shown):
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "token: 12 tokens left",
        "prompt tokens: 512, completion tokens: 64000",
        "token: expired",
        "password: a password is required",
        "[sudo] password for me:\nnext",
        "secret: nvidia-licence not found",
        "secretName: regcred",
        "tokenizer: llama",
        "token: |",
        "the token: x",
    ],
)
def test_a_sentence_after_a_colon_is_no_secret(text):
    assert redact(text) == text


def test_a_quote_in_a_password_is_a_part_of_it_where_the_text_is_one_value():
    assert addresses('http://u:hun"hunter2@h', True) == "http://***@h"
    assert PW not in redact_json(parse('{"p": "http://u:hun\\"hunter2@h"}', "x"))


@pytest.mark.parametrize(
    "text",
    [
        "https://registry.example:5000/@scope/pkg",
        "nvcr.io/nvidia/k8s-device-plugin:v0.17.0@sha256:" + "0" * 64,
        "git@github.com:org/x",
        "http://[::1]:8080/x@y",
        "http://$proxy:$port/x@y",
        "getty@tty1.service: started",
        "me@mirror.example",
        "Is it there?",
        "file:///etc/apt/keys@2",
        "key=value",
        "unexpected token: x",
        'password = "" token=[] auth={}',
        "password = {{ .Password }}",
        r"{\"token\": \"\"}",
    ],
)
def test_other_text_stays(text):
    assert redact(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "password", "db_passwd", "identitytoken", "splunk-token", "client_secret", "auth", "auths",
        "api_key", "apiKey", "access_key", "AWS_SECRET_ACCESS_KEY", "X_KEY", "credential",
        "credentials", "passphrase", "fluentd-shared-key", "pwd", "Authorization", "DB_PWD",
        "--token", "Set-Cookie", "X-Amz-Signature", "proxy_password", "registryAuth",
    ],
)  # fmt: skip
def test_names_of_secrets(name):
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "path", "runtimes", "gpgkey", "key", "key_file", "public_key", "author", "log-driver",
        "key_model", "bypass", "monkey", "compass", "username", "sslclientkey", "",
    ],
)  # fmt: skip
def test_names_of_no_secrets(name):
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("X_KEY=hunter2 b=c", "X_KEY=*** b=c"),
        ("--token=hunter2 --debug", "--token=*** --debug"),
        ("run --token hunter2 -v", "run --token *** -v"),
        ("proxy_password='hunter2 x'", "proxy_password=***"),
        ('seen "auth": "hunter2", "path": "x"', 'seen "auth": "***", "path": "x"'),
        ("Authorization: Basic hunter2", "Authorization: ***"),
        ("curl -H 'Bearer 0123456789hunter2hunter2'", "curl -H 'Bearer ***'"),
        ('toml: line 3: password = "hunter2 x", y', "toml: line 3: password = ***, y"),
        ("pwd =\thunter2 x", "pwd =\t*** x"),
        ("seen {'auth': 'hunter2', 'path': 'x'}", "seen {'auth': '***', 'path': 'x'}"),
        ('{"token":12,"path":"x"}', '{"token":"***","path":"x"}'),
        # As logrus quotes a message, and JSON in JSON.
        (
            r'level=fatal msg="bad: {\"registry-token\":\"hunter2\", \"path\": \"x\"}" a=b',
            r'level=fatal msg="bad: {\"registry-token\":\"***\", \"path\": \"x\"}" a=b',
        ),
        (r'msg="a\nauth = \"hunter2 x\"\nb = 1" c', r'msg="a\nauth = ***\nb = 1" c'),
        (r'auth="{\"password\":\"hunter2\"}" x', "auth=*** x"),
        (r'"auth": "a\"hunter2", "path": "x"', '"auth": "***", "path": "x"'),
        (r'"auth": "a\\", "path": "x"', '"auth": "***", "path": "x"'),
        (r'm="{\"pwd\":\"a\\\"hunter2\",\"b\":1}"', r'm="{\"pwd\":\"***\",\"b\":1}"'),
        (r'm="\"{\\\"pwd\\\":\\\"hunter2\\\"}\""', r'm="\"{\\\"pwd\\\":\\\"***\\\"}\""'),
        # Cut off.
        ('password = "hunter2 hunter2\nx', "password = ***\nx"),
        (r"password = \"hunter2 hunter2", "password = ***"),
    ],
)
def test_words_of_a_program(text, shown):
    assert redact(text) == shown


def test_a_command_line_as_a_list():
    assert redact_items(["--token", PW, "--token", "--debug", "x", f"--pwd={PW}"]) == [
        "--token", MARK, "--token", "--debug", "x", f"--pwd={MARK}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "value",
    [
        r'"http:\/\/svc:hunter2@proxy"',
        r'"http://svc:hunter2\u0040proxy"',
        r'"\u0068ttp://svc:\u0068unter2@proxy"',
        '"svc:hunter2@proxy:3128"',
        '"https://h/x?token=hunter2"',
        '{"fluentd-shared-key": "hunter2"}',
        '{"pwd": "hunter2"}',
        '{"http://u:hunter2@h": {}}',
        '{"runtimeArgs": ["--token", "hunter2"]}',
        '{"runtimeArgs": ["--api-key=hunter2"]}',
        '{"exec-opts": ["plugin.password=hunter2"]}',
        '{"auths": {"r": ["hunter2", {"x": "hunter2"}]}}',
    ],
)
def test_json(value):
    text = '{\n  "keep": [1, "x"],\n  "v": ' + value + "\n}\n"
    shown = redact_json(parse(text, "daemon.json"))
    assert PW not in shown.encode().decode("unicode_escape") and MARK in shown
    assert shown.startswith('{\n  "keep": [1, "x"],\n  "v": ')
    assert shown.count("\n") == text.count("\n")
    parse(shown, "shown")


def test_of_what_follows_the_json_value_nothing_is_shown():
    """Until Docker 23 dockerd did not look at it, so that anything can stand there."""
    document = parse('{"a": 1}\n\n{"pwd": "hunter2",\r\n  "b": "x"}\n', "x", trailing=True)
    assert redact_json(document) == '{"a": 1}\n\n***\r\n  ***\n'


# Forms of the finding M4 (credentials that were shown), and more of the same kind.
TOML = [
    'api_key = "hunter2"',
    'access_key = "hunter2"',
    'credential = "hunter2"',
    'passphrase = "hunter2"',
    'env = ["X_KEY=hunter2"]',
    'args = ["--token", "hunter2"]',
    'args = ["--token=hunter2"]',
    'proxy = "svc:hunter2@proxy:3128"',
    'server = "https://h/x?token=hunter2"',
    'server = "http://svc:hunter2\\u0040proxy"',
    'path = "x" # password = "hunter2"',
    'path = "x" # the old one: http://u:hunter2@h',
    '[host."https://r.example".header]\nX-Foo = ["a",\n  "hunter2"]',
    '[host."https://r.example".header]\n  X-Foo = "hunter2"',
    '# [host."https://r.example".header]\n#   X-Foo = "hunter2"',
    '# [a.headers]\n# X-Foo = ["a",\n#   "hunter2"]',
    'header = { X-Foo = "hunter2" }',
    '[a."http://u:hunter2@h"]\nx = 1',
    'password = """\nhunter2\n"""',
    "password = '''\nhunter2'''",
    'token = [\n  "hunter2",\n]',
]


@pytest.mark.parametrize("lines", TOML)
@pytest.mark.parametrize("cover", [redact_toml, redact_lines])
def test_toml_and_templates_of_it(lines, cover):
    text = f'version = 2\n[a.b]\n  path = "/usr/bin/x"\n{lines}\n[c]\n  d = "e"\n'
    shown = cover(text)
    assert PW not in shown and MARK in shown
    assert shown.startswith('version = 2\n[a.b]\n  path = "/usr/bin/x"\n')
    assert shown.endswith('[c]\n  d = "e"\n')


@pytest.mark.parametrize(
    "text",
    [
        'args = ["--debug", "x"]\nenv = ["A=b"]\n',
        '[a.headers]\n[b]\n  x = "y"\n',
        "# [a.headers]\nx = 1\n",
        's = """\n[a.headers]\nb"""\n',
        "{{ range .X }}\n  password = {{ .Password }}\n{{ end }}\n",
    ],
)
def test_lines_without_secrets_stay(text):
    assert redact_lines(text) == text


def test_ini_of_package_managers():
    text = (
        "[main]\nname = x\nproxy_password=hunter2\nbaseurl = https://h/x?hunter2\npassword: hunter2"
    )
    assert PW not in redact_lines(text)
    assert redact_lines(text).startswith("[main]\nname = x\n")


def test_data():
    data = {"a": {"path": "/x", "args": ["--token", PW], "api_key": PW, "n": 1}, "b": [{"pwd": PW}]}
    assert redact_data(data) == {
        "a": {"path": "/x", "args": ["--token", MARK], "api_key": MARK, "n": 1},
        "b": [{"pwd": MARK}],
    }


def test_data_below_the_name_of_a_secret_or_of_headers():
    data = {
        "token": {"value": PW, "more": [{"x": PW}], "empty": "", "on": True},
        "a": [{"headers": {"X": PW}}, {"Header": {"X": {"y": [PW]}}}],
        "auths": {"r": 12},
    }
    assert redact_data(data) == {
        "token": {"value": MARK, "more": MARK, "empty": "", "on": True},
        "a": [{"headers": {"X": MARK}}, {"Header": {"X": {"y": MARK}}}],
        "auths": {"r": MARK},
    }


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://h/x?token=ab", ("ab",)),
        ("https://h/x?sig=ab&v=1234567890", ("ab",)),
        # What the update servers of SUSE have instead of a password.
        ("https://updates.example/r?0123456789abcdef", ("0123456789abcdef",)),
        ("https://h/metalink?repo=epel-10&arch=x86_64", ()),
        ("https://u:p1@h/,https://u:p2@h/", ("p1", "p2")),
        ("https://***@h/x?***", ()),
    ],
)
def test_secrets_of_addresses(url, found):
    assert secrets(url) == found


@pytest.mark.parametrize(
    "text",
    [
        "a." * 50_000,
        "//" * 50_000,
        "//a:b" * 30_000 + "@",
        "a:b@sha256:0" * 10_000,
        "?" * 100_000,
        "password=" * 10_000,
        "password='" * 10_000,
        '"password":' * 10_000,
        "a-" * 50_000 + "authorization",
        "bearer " * 20_000,
        "- " * 50_000,
        "# " + "x" * 50_000,
        "# " + "token = [" * 6_000,
        "[" * 50_000,
        "\\u0040" * 20_000,
        "x = " + '"\\' * 30_000,
    ],
)
def test_time_is_linear(text):
    """A word of 30 kB took more than half a minute of the processor."""
    begin = time.process_time()
    for cover in (addresses, redact, redact_lines):
        cover(text)
    secrets(text)
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    "part",
    [
        "a=", "a = ", '\\"', "\\", "=", " = ", 'token="', 'token=\\"', 'token=\\\\\\" ',
        "token = [", '"token":', '\\"token\\":', "'token':'", 'token="\\',
        'token = "\\"', "token='\\\"", "token=={{", "'token':{{", "token= {{",
    ],
)  # fmt: skip
def test_time_of_settings_is_linear(part):
    begin = time.process_time()
    redact(part * (250_000 // len(part)))
    assert time.process_time() - begin < 5


def test_a_long_comment_in_toml_takes_no_time():
    begin = time.process_time()
    redact_toml("# " + "x" * 50_000 + "\n# " + "a token, " * 6_000 + "\nx = 1\n")
    assert time.process_time() - begin < 5


def test_a_password_ends_at_the_last_at_sign():
    url = "http://user:pass@PW@proxy.example:3128/a@b"
    assert redact(url) == "http://***@proxy.example:3128/a@b"
    assert secrets(url) == ("pass@PW",)


def test_a_long_word_is_redacted_in_linear_time():
    # Quadratic, it takes a minute of the processor; linear, a fraction of a second.
    begin = time.process_time()
    assert redact("a." * 50_000) == "a." * 50_000
    assert time.process_time() - begin < 10


def test_redact_and_secrets():
    text = "URIs: https://me:word@a.example/deb and http://token@b.example and a@b.example"
    assert redact(text) == (
        "URIs: https://***@a.example/deb and http://***@b.example and a@b.example"
    )
    assert secrets(text) == ("word",)
    assert secrets("https://0123456789abcdef@a.example", "https://0123456789abcdef:@b.example") == (
        "0123456789abcdef",
    )


def test_secrets_of_every_address_are_found():
    urls = ("https://me:first@a.example/", "https://b.example/", "http://me:second@c.example/")
    assert secrets(*urls) == ("first", "second")
    assert secrets("https://me:first@a.example/ https://me:third@b.example/") == ("first", "third")


YAML = """a: 1
token: |
  hunter2
  hunter2, again
users:
- name: me
  user:
    client-key-data: aHVudGVyMg==
    passwords:
    - hunter2
    auth: # of the registry
      a: hunter2
endpoint: https://ops:hunter2@h.example/x
key: |
  -----BEGIN RSA PRIVATE KEY-----
  MIIhunter2
  -----END RSA PRIVATE KEY-----
last: 3
"""


def test_yaml_without_what_is_indented_below_a_secret():
    shown = redact_yaml(YAML)
    assert "hunter2" not in shown and "aHVudGVy" not in shown
    for kept in ("a: 1\n", "- name: me\n", "@h.example/x\n", "last: 3\n"):
        assert kept in shown
    assert redact_yaml("") == ""


def test_a_private_key_without_its_end_is_covered():
    assert redact("x -----BEGIN PRIVATE KEY-----\nMIIhunter2\n") == f"x {MARK}"
    begin = time.monotonic()
    redact("-----BEGIN PRIVATE KEY-----" * 20_000)
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("cover", [redact_lines, redact_yaml])
@pytest.mark.parametrize(
    "line",
    [
        "password: correct hunter2",
        "  - password: correct hunter2",
        "token: a,hunter2",
        "token: a}hunter2",
        "password: !!str hunter2",
        "password: &anchor hunter2",
        'password: "correct hunter2',
        "password: 'it''s hunter2'",
        "password = correct hunter2",
        "x {password: correct hunter2, a: b}",
        "# Authorization: Basic hunter2",
        "h: {Authorization: Basic hunter2}",
        "authorization = Bearer hunter2",
        "set-cookie: a=b; c=hunter2",
        "Nov 24 node kubelet[9]: password: correct hunter2",
    ],
)
def test_a_value_without_quotes_is_covered_to_its_end(cover, line):
    shown = cover(f"a: 1\n{line}\nlast: 3\n")
    assert PW not in shown and MARK in shown
    assert shown.startswith("a: 1\n") and shown.endswith("last: 3\n")


def test_what_follows_a_word_of_a_secret_stays():
    assert redact_lines("Pulled r.example/token-x:v1 in 3s\n").endswith(" in 3s\n")
    assert redact_lines("x token=hunter2 gpu=1\n") == f'x token="{MARK}" gpu=1\n'


@pytest.mark.parametrize("cover", [redact, redact_lines, redact_yaml])
@pytest.mark.parametrize(
    ("kind", "head"),
    [
        ("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,hunter2\n\n"),
        ("PGP PRIVATE KEY BLOCK", "Version: GnuPG - v2\n\n"),
    ],
)
@pytest.mark.parametrize("ended", [True, False])
def test_all_of_a_private_key_is_covered(cover, kind, head, ended):
    key = f"-----BEGIN {kind}-----\n{head}TUlJaHVudGVyMg==\n-hunter2\n"
    shown = cover(f"a: 1\n{key}" + (f"-----END {kind}-----\nlast: 3\n" if ended else ""))
    assert "hunter2" not in shown and "TUlJ" not in shown
    assert shown == f"a: 1\n{MARK}" + ("\nlast: 3\n" if ended else "")


TOKEN = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnLWh1bnRlcjI_x-y"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("curl -u admin:hunter2 https://h/x", "curl -u admin:*** https://h/x"),
        ("curl -uadmin:hunter2 https://h/x", "curl -uadmin:*** https://h/x"),
        ("curl --user a:hunter2 x", "curl --user a:*** x"),
        ("curl --proxy-user=a:hunter2 x", "curl --proxy-user=a:*** x"),
        ("curl -u 'a:b hunter2' x", "curl -u 'a:***' x"),
        ('["curl","-u","a:hunter2","x"]', '["curl","-u","a:***","x"]'),
        ("sshpass -p hunter2 ssh x", "sshpass -p *** ssh x"),
        ("docker login r.example -u me -p hunter2", "docker login r.example -u me -p ***"),
        ("machine h login me password hunter2", "machine h login me password ***"),
        (f"got {TOKEN} x", "got *** x"),
        (f'{{"jwt":"{TOKEN}"}}', '{"jwt":"***"}'),
        (rf"a\n{TOKEN}", r"a\n***"),
        ("key of NGC nvapi-hunter2hunter2hunter2-x", "key of NGC ***"),
        ("clone with ghp_hunter2hunter2hunter2 x", "clone with *** x"),
        ("push with glpat-hunter2hunter2hunter2 x", "push with *** x"),
        ("pull with hf_hunter2hunter2hunter2 x", "pull with *** x"),
        ("X-Api-Key: hunter2", "X-Api-Key: ***"),
        ("the password is hunter2", "the password is ***"),
        ('Password for admin was "a hunter2" x', "Password for admin was *** x"),
        ("Your API key is: hunter2x", "Your API key is: ***"),
        ("the value of the token is hunter2", "the value of the token is ***"),
        ("token was set to hunter2, restart", "token was set to *** restart"),
        ("secret -> hunter2", "secret -> ***"),
        ("password => hunter2", "password => ***"),
        ("'password' => 'hunter2'", "'password' => '***'"),
        ('password := "hunter2"', "password := ***"),
        (
            "[{Name:A Value:b} {Name:DB_PASSWORD Value:x hunter2 ValueFrom:nil}]",
            "[{Name:A Value:b} {Name:DB_PASSWORD Value:*** ValueFrom:nil}]",
        ),
        ('{"name":"DB_PASSWORD","value":"hunter2"}', '{"name":"DB_PASSWORD","value":"***"}'),
        ('{"value":"hunter2","name":"TOKEN"}', '{"value":"***","name":"TOKEN"}'),
        (
            r'm="{\"name\":\"TOKEN\",\"value\":\"a hunter2\"}"',
            r'm="{\"name\":\"TOKEN\",\"value\":\"***\"}"',
        ),
        ("- {name: DB_PASSWORD, value: hunter2}", "- {name: DB_PASSWORD, value: ***}"),
        (r'{"to\u006ben": "hunter2"}', '{"token": "***"}'),
        # Cut off.
        ('"--token", "a hunter2', '"--token", ***'),
        ('{"name":"TOKEN","value":"a hunter2', '{"name":"TOKEN","value":"***"'),
    ],
)
def test_forms_that_no_name_before_a_value_shows(text, shown):
    assert redact(text) == shown
    for cover in (redact_lines, redact_yaml):
        covered = cover(f"a: 1\n{text}\nlast: 3\n")
        assert PW not in covered and TOKEN[-6:] not in covered
        assert covered.startswith("a: 1\n") and covered.endswith("last: 3\n")


@pytest.mark.parametrize(
    "text",
    [
        "password is required",
        "The token is expired.",
        "token expired",
        "Warning: secret is not found",
        "the password is too short",
        "volume secret was mounted in 3s",
        "the secret of nvidia is missing",
        "authorization is enabled",
        "auth is RBAC",
        "the first pass is 3",
        "the key is 7",
        "docker run -u 1000:1000 x",
        "docker run --user 0:0",
        "gitlab-runner register -u https://git.example --tag x",
        "journalctl -u kubelet: failed",
        "systemctl status -u x time=12:30",
        "{Name:FOO Value:bar ValueFrom:nil}",
        '{"name":"nvidia.com/gpu","value":"8"}',
        "login: prompt -p",
        "eyJ.x.y is not a token",
        "a -> b",
        "Pulling image nvcr.io/nvidia/k8s-device-plugin:v0.17.0",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05",
        'err="secret is still being created"',
        'rolebindings.rbac.authorization.k8s.io is forbidden: User "system:serviceaccount:a:b" '
        'cannot list resource "rolebindings" in API group "rbac.authorization.k8s.io"',
        'secrets is forbidden: User "jane" cannot list resource "secrets" in API group ""',
        'tokenreviews.authentication.k8s.io is forbidden: User "jane" cannot create',
    ],
)
def test_ordinary_lines_of_logs_stay(text):
    for cover in (redact, redact_lines, redact_yaml):
        assert cover(text) == text


def test_names_and_values_of_pairs():
    data = [{"name": "DB_PASSWORD", "value": PW}, {"Value": PW, "Key": "token"}]
    assert redact_data(data) == [
        {"name": "DB_PASSWORD", "value": MARK},
        {"Value": MARK, "Key": "token"},
    ]
    assert redact_data({"name": "gpu", "value": "8"}) == {"name": "gpu", "value": "8"}
    assert redact_items(["curl", "-u", "a:b c", "-u", "1:2"]) == [
        "curl",
        "-u",
        "a:***",
        "-u",
        "1:2",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "env:\n- name: DB_PASSWORD\n  value: hunter2\n",
        "env:\n  - value: hunter2\n    name: DB_PASSWORD\n",
        "- name: DB_PASSWORD\n  value: |\n    hunter2\n    x\n",
        "- name: DB_PASSWORD\n\n  # of the database\n  value:\n    hunter2\n",
        '[\n  {\n    "name": "DB_PASSWORD",\n    "value": "hunter2"\n  }\n]\n',
        "? token\n: hunter2\n",
        "- ? token\n  :\n    hunter2\n",
        '"to\\u006ben": hunter2\n',
    ],
)
def test_yaml_with_name_and_value_in_lines_of_their_own(text):
    rest = "next:\n- name: A\n  value: keep\nlast: 3\n"
    shown = redact_yaml(text + rest)
    assert PW not in shown and MARK in shown and shown.endswith(rest)


def test_each_name_of_a_secret_is_looked_for():
    for part in ("passw", "passphrase", "token", "secret", "credential", "authoriz", "cookie",
                 "api-key", "access.key", "AuthKey", "KEY_DATA", "auth", "auths", "pass", "PWD",
                 "sig", "signature", "x_key", "to-ken", "coo_kie", "to\u00e9ken"):  # fmt: skip
        for name in (part, f"X_{part}", part.title(), f"db.{part}"):
            assert may_name_secret(f"a {name} b") or not is_secret(name), name
    assert not may_name_secret("NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.")


def test_a_long_text_is_cut_between_words():
    assert first_words("ab cd", 5) == "ab cd" and first_words("ab cd ef", 4) == "ab"
    assert first_words("abcdef", 4) == "" and first_words("", 0) == ""


def test_a_line_of_a_hostile_node_takes_time_in_proportion_to_its_length():
    """16 MB took five hours: for each pair, brackets were counted from the begin."""
    begin = time.process_time()
    shown = redact_yaml('token="' * 100_000)
    assert time.process_time() - begin < 20
    assert "token" in shown


@pytest.mark.parametrize(
    "text", [f"Authorization: Bearer {TOKEN}", f"the token is {TOKEN}", f"authorization is {TOKEN}"]
)
def test_a_credential_after_such_a_word_is_covered(text):
    assert TOKEN not in redact(text) and MARK in redact(text)
