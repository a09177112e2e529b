# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remove secrets from addresses, configuration and output of programs. Pure.

One list of words defines which names hold a secret (:func:`is_secret`), and one function redacts
addresses (:func:`addresses`). Each function takes time in proportion to its text, because texts
come from servers and unknown configuration.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

MARK = "***"

# Parts of a name, and whole parts of it: in "db_auth" and "dbAuth" the part is "auth".
_WORDS = re.compile(
    r"passw|passphrase|token|secret|credential|authoriz|cookie|"
    r"apikey|accesskey|authkey|privatekey|sharedkey|signingkey|keydata"
)
_PARTS = frozenset({"auth", "auths", "pass", "pwd", "sig", "signature"})
_PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
# Tables of HTTP headers, in which any name can hold a credential.
_HEADERS = frozenset({"header", "headers"})

_WORD = re.compile(r'[^\s"]+')
_WHOLE_WORD = re.compile(r"\S+")
# JSON may write a slash as \/, and any character as \uXXXX.
_SLASHES = re.compile(r"(?:\\?/){2}")
_AT = re.compile(r"@|\\u0040")
# A port is a number, or a variable that holds it.
_HOST_AND_PORT = re.compile(r"(?:[^:]*|\[[^\]]*\])(?::(?:\d{1,5}|[$%{][^:]*))?")
_DIGEST = re.compile(r"sha(?:256|384|512):[0-9a-f]")
_NAME_BEFORE = re.compile(r"[\w.-]+=")

# NAME=value, name = "value" and "name": "value", also as a string in another one quotes them. Each
# level of strings doubles the backslashes and adds one.
_SETTING = re.compile(
    r"""(?<![\w.-])([\w.-]+)(\\{0,7}["'])?([ \t]{0,16}(?:=+|:)[ \t]{0,16})(\\{0,7}["'])?"""
)
_QUOTE = re.compile(r'(?<!\\)\\*"')
_MEMBER = re.compile(r'[^\s",}\]]+')
_NOTHING = frozenset({'""', "''", "{}", "[]"})
_OPTION = re.compile(r"(?<!\S)(--?[\w.-]+)([ \t]+)([^\s-]\S*)")
_QUOTED_OPTION = re.compile(r"""("--?[\w.-]+"|'--?[\w.-]+')([ \t]*,[ \t]*)("[^"]*"|'[^']*')""")
_HEADER_LINE = re.compile(
    r"(?i)(?<![\w-])([a-z-]*authorization|(?:set-)?cookie)(:[ \t]*)([^\s][^\n]*)"
)
_BEARER = re.compile(r"(?i)(?<!\w)bearer [\w.~+/=-]{20,}")

# A private key in PEM or of PGP, with all that its body can have; without an end, it was cut.
_PEM = re.compile(
    r"-----BEGIN[A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END[A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)

# A pair in a line of configuration, and where a table begins, also in a comment.
_PAIR = re.compile(r"""(?<![\w.-])([\w.-]+)(["']?[ \t]*[=:][ \t]*)""")
# In YAML, two quotes in a string of single ones are one.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^']|'')*'")
_LONG_STRINGS = ('"""', "'''")
_BARE = re.compile(r"[^\s,}\]]+")
_WHOLE_LINE = re.compile(r".+", re.DOTALL)
_IN_FLOW = re.compile(r"[^,}\]]+")
# Values of these names have several words.
_HEADER_NAME = re.compile(r"authoriz|cookie", re.I)
_BEFORE_NAME = re.compile(r"""[\s#;"'-]*""")
_YAML_NAME = re.compile(r"""([ ]*(?:-[ ]+)?)["']?([\w.-]+)["']?:(?:[ ]|$)""")
_COMMENT = re.compile(r"[ \t]*[#;]+[ \t]*")
_TABLE = re.compile(r"[ \t]*\[{1,2}[^=\n]*\]")

# A token can take the place of the user, without a password; a short word is a name.
_TOKEN_LENGTH = 8
# Lines around a change, as diff shows them; more lines than that are not compared one by one.
_CONTEXT = 3
_MOST_PAIRS = 1_000_000


@functools.lru_cache(maxsize=256)
def is_secret(name: str) -> bool:
    """Return whether a key, variable, option or header of this name holds a secret."""
    parts = [part.lower() for part in _PART.findall(name)]
    if _WORDS.search("".join(parts)) or not _PARTS.isdisjoint(parts):
        return True
    # X_KEY, but neither key_file nor PUBLIC_KEY.
    return len(parts) > 1 and parts[-1] == "key" and "public" not in parts


def is_header_table(name: str) -> bool:
    """Return whether a table of this name holds HTTP headers."""
    return name.lower() in _HEADERS


def addresses(text: str, whole: bool = False) -> str:
    """Return the text with users, passwords and queries of its addresses replaced.

    The last ``@`` ends the password, as Go's and Python's libraries read it. A query is covered
    because it can be the credential: a signed link, or the token of an update server.

    :param whole: whether the text is one value; otherwise a quote ends an address too.
    """
    if "@" not in text and "?" not in text and "\\u0040" not in text:
        return text
    return (_WHOLE_WORD if whole else _WORD).sub(lambda word: _address(word[0]), text)


def _address(word: str) -> str:
    first = _SLASHES.search(word)
    if first is None:
        return _without_scheme(word)
    done, at = [word[: first.end()]], first.end()
    for slashes in _SLASHES.finditer(word, at):
        done += [_authority(word[at : slashes.start()]), slashes[0]]
        at = slashes.end()
    head, mark, query = "".join([*done, _authority(word[at:])]).partition("?")
    return f"{head}?{MARK}" if mark and query and _SLASHES.search(head) else head + mark + query


def _authority(text: str) -> str:
    """Replace user and password in the part after ``//``."""
    end = text.find("/")
    name = text if end < 0 else text[:end]
    last = _last_at(name)
    if last is None and not _HOST_AND_PORT.fullmatch(name.rstrip("\\")):
        # A password with a slash in it: no library accepts this address, but it is shown.
        last = _last_at(text)
    return text if last is None else MARK + text[last:]


def _last_at(text: str) -> int | None:
    found = [match.start() for match in _AT.finditer(text)]
    return found[-1] if found else None


def _without_scheme(word: str) -> str:
    """Replace ``user:password@host``, which is also valid as the address of a proxy."""
    last = _last_at(word)
    if last is None:
        return word
    if _DIGEST.match(word, last + 1):
        # An image by its digest: registry/name:tag@sha256:...
        last = _last_at(word[:last])
        if last is None:
            return word
    name = _NAME_BEFORE.match(word)
    start = name.end() if name else 0
    user, _colon, password = word[start:last].partition(":")
    return f"{word[:start]}{MARK}{word[last:]}" if user and password else word


def redact(text: str, whole: bool = False) -> str:
    """Return the output of a program, or a string of a configuration, without secrets.

    Covered are addresses, ``NAME=value``, ``--name value``, ``"name": "value"`` where the name is
    one of a secret, also in a string that is quoted in another one, and headers of an
    authorization.

    :param whole: whether the text is one value; otherwise a quote ends an address too.
    """
    text = addresses(text, whole)
    text = _settings(text)
    text = _OPTION.sub(_covered, text)
    text = _QUOTED_OPTION.sub(_covered, text)
    text = _HEADER_LINE.sub(rf"\g<1>\g<2>{MARK}", text)
    return _BEARER.sub(f"Bearer {MARK}", _without_keys(text))


def _without_keys(text: str) -> str:
    return _PEM.sub(MARK, text) if "PRIVATE KEY" in text else text


def _settings(text: str) -> str:
    parts: list[str] = []
    at = 0
    for match in _SETTING.finditer(text):
        name, quote, between = match[1], match[2] or "", match[3]
        start = match.start()
        if start < at or (":" in between and not (quote and text[start - 1 : start] in ('"', "'"))):
            continue
        # After a backslash, the first letter is a line end or a blank.
        escaped = text[start - 1 : start] == "\\" and name[0] in "nrt"
        if not (is_secret(name) or (escaped and is_secret(name[1:]))):
            continue
        begin = match.end(3)
        end = _end_of_setting(text, begin, match[4], bool(quote))
        value = text[begin:end]
        if value.replace("\\", "") in _NOTHING:
            # An empty value is not a secret.
            continue
        if not value or (value.startswith("{{") and between != between.strip()):
            # What a template fills in. (A blank ends such a word: none is read twice.)
            continue
        parts += [text[at:begin], f"{quote}{MARK}{quote}"]
        at = end
    return "".join([*parts, text[at:]])


def _end_of_setting(text: str, begin: int, opening: str | None, member: bool) -> int:
    if opening is None:
        bare = (_MEMBER if member else _WHOLE_WORD).match(text, begin)
        return bare.end() if bare else begin
    start = begin + len(opening)
    if opening.endswith("'"):
        end = text.find(opening, start)
        found = end + len(opening) if end >= 0 else -1
    else:
        found = _end_of_string(text, start, len(opening) - 1)
    if found >= 0:
        return found
    # It was truncated.
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _end_of_string(text: str, start: int, level: int) -> int:
    """Return where a string ends that began with so many backslashes before its quote, or -1.

    A backslash in it is twice as many, and one more is before each quote in it. A quote of an
    outer string, with fewer, ends it too.
    """
    for quote in _QUOTE.finditer(text, start):
        if (len(quote[0]) - 1) % (2 * level + 2) <= level:
            return quote.end()
    return -1


def _covered(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{MARK}" if is_secret(match[1]) else match[0]


def redact_items(items: Iterable[str]) -> list[str]:
    """Return the strings of a list without secrets; a list can be a command line.

    After ``--token`` the next one is covered.
    """
    shown: list[str] = []
    before = ""
    for item in items:
        option = before.startswith("-") and "=" not in before and is_secret(before)
        shown.append(MARK if option and not item.startswith("-") else redact(item, True))
        before = item
    return shown


def redact_lines(text: str) -> str:
    """Return lines of configuration without secrets, by syntax: a template, comments, INI.

    In a table of headers all values are covered. A value can go on in the next lines.
    """
    shown: list[str] = []
    headers = commented = False
    closing = ""
    for line in _without_keys(text).splitlines(keepends=True):
        body = line.rstrip("\r\n")
        ending = line[len(body) :]
        if closing:
            end = body.find(closing)
            closing = closing if end < 0 else ""
            shown.append(f"{body[: len(body) - len(body.lstrip())]}{MARK}{ending}")
            continue
        comment = _COMMENT.match(body)
        content = body[comment.end() :] if comment else body
        if not comment:
            commented = False
        if _TABLE.match(content):
            last = content.partition("]")[0].rpartition(".")[2].strip("[ \t\"'")
            if comment:
                commented = is_header_table(last)
            else:
                headers = is_header_table(last)
        covered, closing = _line(body, headers or (commented and comment is not None))
        shown.append(covered + ending)
    return "".join(shown)


def redact_yaml(text: str) -> str:
    """Return YAML without secrets: as lines, and of a secret also what is indented below it."""
    text = _without_keys(text)
    shown: list[str] = []
    below: int | None = None
    for line in redact_lines(text).splitlines(keepends=True):
        content = line.strip()
        indent = len(line) - len(line.lstrip())
        # A list can begin in the column of its name.
        if (
            below is not None
            and content
            and indent <= below
            and not (indent == below and content.startswith("- "))
        ):
            below = None
        if below is not None and content:
            shown.append(f"{line[:indent]}{MARK}\n")
            continue
        shown.append(line)
        name = _YAML_NAME.match(line)
        if name and (is_secret(name[2]) or is_header_table(name[2])):
            below = len(name[1])
    return "".join(shown)


def _line(line: str, all_names: bool) -> tuple[str, str]:
    """Return the redacted line, and the delimiter that ends a value which continues."""
    parts: list[str] = []
    at = 0
    for pair in _PAIR.finditer(line):
        start = pair.end()
        if pair.start() < at or line.startswith("{{", start) or start == len(line):
            continue
        if not (_is_secret_path(pair[1]) or (all_names and "=" in pair[2])):
            continue
        end, closing = _end_of_value(line, start, _bare(line, pair))
        if line[start:end] in _NOTHING:
            # An empty value is not a secret.
            continue
        parts += [redact(line[at:start]), f'"{MARK}"']
        at = end
        if closing:
            return "".join(parts), closing
    return "".join([*parts, redact(line[at:])]), ""


def _is_secret_path(path: str) -> bool:
    return is_secret(path) or not _HEADERS.isdisjoint(path.lower().split("."))


def _bare(line: str, pair: re.Match[str]) -> re.Pattern[str]:
    """Return what belongs to the value if it has no quotes: one word, or all that follows."""
    if _HEADER_NAME.search(pair[1]):
        return _WHOLE_LINE
    before = line[: pair.start()]
    if sum(map(before.count, "{[")) > sum(map(before.count, "}]")):
        return _IN_FLOW
    first = _BEFORE_NAME.fullmatch(before) is not None
    return _WHOLE_LINE if first or pair[2].rstrip(" \t") != pair[2] else _BARE


def _end_of_value(line: str, start: int, bare: re.Pattern[str]) -> tuple[int, str]:
    """Return where the value ends; and if that is in another line, by what.

    :param bare: the value if it has no quotes.
    """
    for quotes in _LONG_STRINGS:
        if line.startswith(quotes, start):
            end = line.find(quotes, start + len(quotes))
            return (len(line), quotes) if end < 0 else (end + len(quotes), "")
    string = _STRING.match(line, start)
    if string:
        return string.end(), ""
    for opening, closing in ("[]", "{}"):
        if line[start] == opening:
            # None of what is in it is shown, nor what follows it in this line.
            end = line.rfind(closing)
            return (end + 1, "") if end > start else (len(line), closing)
    if line[start] in "\"'":
        # A quote without its end.
        return len(line), ""
    found = bare.match(line, start)
    return (found.end() if found else len(line)), ""


def secrets(*urls: str) -> tuple[str, ...]:
    """Return the passwords and tokens in the addresses."""
    found: list[str] = []
    for url in urls:
        for word in _WORD.findall(url):
            found.extend(_secrets(word))
    return tuple(dict.fromkeys(found))


def _secrets(word: str) -> list[str]:
    found = []
    for rest in _SLASHES.split(word)[1:]:
        name = rest.partition("/")[0]
        last = _last_at(name)
        user, _colon, password = name[: last or 0].partition(":")
        if password or len(user) >= _TOKEN_LENGTH:
            found.append(password or user)
        for pair in rest[last or 0 :].partition("?")[2].split("&"):
            key, equals, value = pair.partition("=")
            if equals and is_secret(key):
                found.append(value)
            elif not equals and len(key) >= _TOKEN_LENGTH:
                # The update servers of SUSE accept a token without a password.
                found.append(key)
    return [text for text in found if text and text != MARK]


def changed_parts(before: str, after: str) -> tuple[str, str]:
    """Return the differences of two texts with three lines of context, for a diff.

    What is left out on both sides is one line that says how much it is.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    left = 0
    while left < min(len(old), len(new)) and old[left] == new[left]:
        left += 1
    right = 0
    while right < min(len(old), len(new)) - left and old[-1 - right] == new[-1 - right]:
        right += 1
    inner = (old[left : len(old) - right], new[left : len(new) - right])
    if len(inner[0]) * len(inner[1]) > _MOST_PAIRS:
        blocks = []
    else:
        matcher = difflib.SequenceMatcher(None, *inner)
        blocks = [
            (block.a + left, block.b + left, block.size) for block in matcher.get_matching_blocks()
        ][:-1]
    same = [(0, 0, left), *blocks, (len(old) - right, len(new) - right, right)]
    return _cut(old, [(a, size) for a, _b, size in same]), _cut(
        new, [(b, size) for _a, b, size in same]
    )


def _cut(lines: list[str], same: list[tuple[int, int]]) -> str:
    """Return the lines without the inner part of unchanged regions."""
    shown: list[str] = []
    at = 0
    for index, (start, size) in enumerate(same):
        shown += lines[at:start]
        head = _CONTEXT if index else 0
        tail = _CONTEXT if index < len(same) - 1 else 0
        left_out = size - head - tail
        if left_out > _CONTEXT:
            shown += lines[start : start + head]
            shown.append(f"[... {left_out} lines ...]\n")
            shown += lines[start + size - tail : start + size]
        else:
            shown += lines[start : start + size]
        at = start + size
    return "".join(shown)


def redact_data(value: Any, name: str = "", secret: bool = False) -> Any:
    """Return JSON data without secrets, by the names of their members and by what strings hold.

    All that lies below the name of a secret, or of a table of headers, is covered.

    :param secret: whether the value lies below such a name.
    """
    secret = secret or is_secret(name) or is_header_table(name)
    if isinstance(value, Mapping):
        return {key: redact_data(item, str(key), secret) for key, item in value.items()}
    if not value or isinstance(value, bool):
        return value
    if secret:
        return MARK
    if isinstance(value, str):
        return redact(value, True)
    if isinstance(value, list):
        texts = redact_items(item if isinstance(item, str) else "" for item in value)
        return [
            text if isinstance(item, str) else redact_data(item) for item, text in zip(value, texts)
        ]
    return value
