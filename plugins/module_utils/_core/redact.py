# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remove secrets from addresses, values of configuration and output of programs. Pure.

One list of words defines which names hold a secret (:func:`is_secret`), and one function redacts
addresses (:func:`addresses`). Each function takes time in proportion to its text, because texts
come from servers and unknown configuration.
"""

from __future__ import annotations

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
# One of them is in each name of a secret.
_IN_NAMES = ("pass", "pwd", "token", "secret", "credential", "auth", "cookie", "sig", "key")
# Tables of HTTP headers, in which any name can hold a credential.
HEADERS = frozenset({"header", "headers"})

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
    r"""(?<![\w.-])([\w.-]+)(\\{0,7}["'])?([ \t]{0,16}(?:=+>?|:=?)[ \t]{0,16})(\\{0,7}["'])?"""
)
_QUOTE = re.compile(r'(?<!\\)\\*"')
_MEMBER = re.compile(r'[^\s",}\]]+')
NOTHING = frozenset({'""', "''", "{}", "[]"})
_OPTION = re.compile(r"(?<!\S)(--?[\w.-]+)([ \t]+)([^\s-]\S*)")
# A text that was cut has no last quote.
_QUOTED_OPTION = re.compile(
    r"""("--?[\w.-]+"|'--?[\w.-]+')([ \t]*,[ \t]*)("[^"]*(?:"|\Z)|'[^']*(?:'|\Z))"""
)
_HEADER_LINE = re.compile(
    r"(?i)(?<![\w-])([a-z-]*authorization|(?:set-)?cookie|[a-z-]*api-key)(:[ \t]*)([^\s][^\n]*)"
)
_BEARER = re.compile(r"(?i)(?<!\w)bearer [\w.~+/=-]{20,}")
# A JSON Web Token (RFC 7519: parts in base64url, the first one begins with {"), and keys of NGC,
# GitHub, GitLab and Hugging Face.
_TOKEN = re.compile(
    r"(?:(?<![\w-])|(?<=\\[nrt]))(?:eyJ[\w-]{8,}(?:\.[\w-]+){1,4}\.?|nvapi-[\w-]{20,}"
    r"|gh[opsru]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|hf_[A-Za-z0-9]{20,})"
)
_TOKENS = ("eyJ", "nvapi-", "gh", "glpat-", "hf_")

# USER:PASSWORD after curl's option. Two numbers are user and group, as docker run has them.
_USER_OPTIONS = frozenset({"-u", "-U", "--user", "--proxy-user"})
_USER = re.compile(
    r"""(?<![^\s"'(])(-[uU](?:["']?[ \t,]{1,4})?|--(?:proxy-)?user["']?[ \t,=]{1,4})"""
    r"""(?!["']?\d+:\d+(?![^\s"',]))"""
    r"""("[^":\n]+:(?!//)[^"\n]+|'[^':\n]+:(?!//)[^'\n]+|[^\s:"']+:(?!//)[^\s"']+)"""
)
# Other commands, and the lines of .netrc.
_LOGIN = re.compile(
    r"""(?i)(?<![\w-])"""
    r"""(sshpass[ \t]+-p[ \t]*|login[ \t][^\n]{0,100}?[ \t](?:-p|password)[ \t]+)"""
    r"""("[^"\n]*"|'[^'\n]*'|[^\s"'-]\S*)"""
)
# "the password is X", "secret -> X".
_SAID = re.compile(
    r"""(?i)(?<![\w.-])((?:api|access)[ \t]key|[\w.-]+)"""
    r"""((?:[ \t]{1,4}(?:for|of)[ \t]{1,4}\S{1,64})?"""
    r"""[ \t]{1,4}(?:(?:is|was)(?:[ \t]{1,4}set[ \t]{1,4}to)?:?|->)[ \t]{1,4})(["'`]?)(\S+)"""
)
# What programs say of a password that they do not show. One that is such a word remains visible.
_ORDINARY = re.compile(
    r"(?:a|about|already|also|always|an|and|as|at|bad|being|but|by|case-sensitive|correct|default|"
    r"done|down|empty|enough|false|for|forbidden|found|from|given|gone|good|here|hidden|if|in|"
    r"incorrect|invalid|kept|known|long|lost|mandatory|needed|never|new|nil|no|none|not|now|null|"
    r"of|off|ok|okay|old|on|one|only|optional|or|out|present|private|read|ready|right|safe|secret|"
    r"sent|set|short|shown|so|stale|still|strong|that|the|there|this|to|too|true|unknown|unset|"
    r"unusable|up|valid|weak|what|where|with|without|wrong|your|"
    r"[a-z]+(?:ed|able|ible|ing|ory|less))"
    r"[.,;:!?)\]}\"'`]*",
    re.I,
)
# "password: X" without quotes, as programs and configuration print it. What a word before it makes
# a
# message ("unexpected token: X") is none.
_AFTER_COLON = re.compile(
    r"""(?i)(?<![\w.-])(?<!unexpected )(?<!invalid )(?<!unknown )(?<!illegal )(?<!missing )"""
    r"""([\w.-]*(?:passw|passphrase|passcode|pwd|token(?!i[sz])|secret(?![_-]?(?:name|ref))"""
    r"""|credential|(?:api|access)[_-]?key)[\w.-]*):[ \t]{1,4}(?=[^\s`{}\[\]<|>*!&])"""
    r"""("[^"\n]+"|'[^'\n]+'|(?!["'])[^\s,;)}\]]+)(?=([ \t]+[^\s#])?)"""
)
_PASSWORD = re.compile(r"passw|passphrase|passcode|pwd")
_SHORTEST_TOKEN = 4
_LIKE_A_TOKEN = re.compile(r"(?=.*\d)(?=.*[A-Za-z]).{8,}")
# A pair of members, as Kubernetes has environments; Go prints {Name:X Value:Y ValueFrom:nil}.
_NAMED = re.compile(
    r"""(?i)(?<![\w.-])(?:name|key)(?:\\{0,7}["'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\{0,7}["'])?"""
    r"""([\w.-]+)(?:\\{0,7}["'])?[ \t]{0,4}[,; \t][ \t]{0,4}(?:\\{0,7}["'])?value"""
    r"""(?:\\{0,7}["'])?[ \t]{0,4}[:=][ \t]{0,4}(\\{0,7}["'])?"""
)
_GO_VALUE = re.compile(r"[^\n]*?(?=[ ,]ValueFrom|[}\]\n]|\Z)")
_VALUE_BEFORE_NAME = re.compile(
    r"""(?i)("value"[ \t]{0,4}:[ \t]{0,4})("(?:[^"\\\n]|\\.)*")"""
    r"""([ \t]{0,4},[ \t]{0,4}"(?:name|key)"[ \t]{0,4}:[ \t]{0,4}")([\w.-]+)(?=")"""
)
_NAMES = frozenset({"name", "key"})
_ESCAPED_NAME = re.compile(r"""(?<=")[\w.-]*(?:\\u00[0-9a-fA-F]{2}[\w.-]*)+(?="[ \t]{0,16}[:=])""")
_ESCAPED_LETTER = re.compile(r"\\u([0-9a-fA-F]{4})")

# A private key in PEM or of PGP, with all that its body can have; without an end, it was cut.
_PEM = re.compile(
    r"-----BEGIN[A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END[A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)


# A token can take the place of the user, without a password; a short word is a name.
_TOKEN_LENGTH = 8


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
    return name.lower() in HEADERS


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

    Covered are addresses, ``NAME=value``, ``--name value``, ``"name": "value"``, ``name is value``
    and ``name: NAME, value: value`` where the name is one of a secret, also in a string that is
    quoted in another one, headers of an authorization, ``curl -u user:value``, and tokens that
    their form shows.

    :param whole: whether the text is one value; otherwise a quote ends an address too.
    """
    text = addresses(plain_names(text), whole)
    small = text.lower()
    # Most texts have none of these words, and looking for a word takes a hundredth of the time.
    if may_name_secret(text):
        text = _named(_settings(text))
        text = _OPTION.sub(_covered, text)
        text = _QUOTED_OPTION.sub(_covered, text)
        text = _HEADER_LINE.sub(rf"\g<1>\g<2>{MARK}", text)
        text = _AFTER_COLON.sub(_after_colon, _said(without_keys(text)))
    if "-u" in small or "-user" in small:
        text = _USER.sub(_user, text)
    if "sshpass" in small or "login" in small:
        text = _LOGIN.sub(rf"\g<1>{MARK}", text)
    if "bearer" in small:
        text = _BEARER.sub(f"Bearer {MARK}", text)
    return _TOKEN.sub(MARK, text) if any(one in text for one in _TOKENS) else text


def may_name_secret(text: str) -> bool:
    """Return whether a text can have a name for which :func:`is_secret` is true."""
    if not text.isascii():
        # Other letters divide the parts of a name.
        return True
    letters = text.lower().replace("_", "").replace("-", "").replace(".", "")
    return any(part in letters for part in _IN_NAMES)


def without_keys(text: str) -> str:
    return _PEM.sub(MARK, text) if "PRIVATE KEY" in text else text


def plain_names(text: str) -> str:
    """Return JSON text whose names of secrets are written without ``\\uXXXX``."""
    return _ESCAPED_NAME.sub(_plain_name, text) if "\\u00" in text else text


def _plain_name(match: re.Match[str]) -> str:
    plain = _ESCAPED_LETTER.sub(lambda letter: chr(int(letter[1], 16)), match[0])
    return plain if is_secret(plain) else match[0]


def _user(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2].partition(':')[0]}:{MARK}"


def _said(text: str) -> str:
    parts: list[str] = []
    at = begin = 0
    while match := _SAID.search(text, begin):
        # The next name can be in these words: "the value of the token is X".
        begin = match.end(1)
        if not _is_said_secret(match[1]) or (not match[3] and _ORDINARY.fullmatch(match[4])):
            continue
        begin = match.end()
        if match[3]:
            begin = _end_of_setting(text, match.start(3), match[3], True)
        parts += [text[at : match.start(3)], MARK]
        at = begin
    return "".join([*parts, text[at:]])


@functools.lru_cache(maxsize=256)
def _is_said_secret(name: str) -> bool:
    """Return whether it is such a name; "auth" and "pass" are words of other sentences too."""
    plain = "".join(_PART.findall(name)).lower()
    return _WORDS.search(plain) is not None or plain in ("pwd", "passcode")


def _after_colon(match: re.Match[str]) -> str:
    """Cover a word after the name of a secret and a colon, unless a sentence follows the colon.

    After the name of a password each word counts, because no sentence has to follow it.
    """
    name, value, more = match[1], match[2], match[3]
    if not _is_said_secret(name) or _ORDINARY.fullmatch(value) or value[1:-1] == MARK:
        return match[0]
    if _PASSWORD.search(name.lower()):
        return match[0][: match.start(2) - match.start()] + MARK
    # A number of tokens, a name in a sentence.
    plural = name.lower().endswith("s") and value.isdecimal()
    if plural or len(value) < _SHORTEST_TOKEN or (more and not _LIKE_A_TOKEN.fullmatch(value)):
        return match[0]
    return match[0][: match.start(2) - match.start()] + MARK


def _named(text: str) -> str:
    parts: list[str] = []
    at = 0
    for match in _NAMED.finditer(text):
        if match.start() < at or not is_secret(match[1]):
            continue
        begin, end = match.start(2), match.end()
        if match[2]:
            end = _end_of_setting(text, begin, match[2], True)
        else:
            begin = end
            value = _GO_VALUE.match(text, begin)
            end = value.end() if value else begin
        if end > begin:
            shown = f"{match[2]}{MARK}{match[2]}" if match[2] else MARK
            parts += [text[at:begin], shown]
            at = end
    return _VALUE_BEFORE_NAME.sub(_covered_value, "".join([*parts, text[at:]]))


def _covered_value(match: re.Match[str]) -> str:
    return f'{match[1]}"{MARK}"{match[3]}{match[4]}' if is_secret(match[4]) else match[0]


def _settings(text: str) -> str:
    parts: list[str] = []
    at = 0
    for match in _SETTING.finditer(text):
        name, quote, between = match[1], match[2] or "", match[3]
        start = match.start()
        if start < at or (
            between.strip() == ":" and not (quote and text[start - 1 : start] in ('"', "'"))
        ):
            continue
        # After a backslash, the first letter is a line end or a blank.
        escaped = text[start - 1 : start] == "\\" and name[0] in "nrt"
        if not (is_secret(name) or (escaped and is_secret(name[1:]))):
            continue
        begin = match.end(3)
        end = _end_of_setting(text, begin, match[4], bool(quote))
        value = text[begin:end]
        if value.replace("\\", "") in NOTHING:
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


def first_words(text: str, most: int) -> str:
    """Return the begin of a long text, cut between two words.

    Half a word can be half an address, whose password no ``@`` shows. Other forms of secrets are
    covered to the end of the text where their end is missing.
    """
    if len(text) <= most:
        return text
    words = text[:most].rsplit(None, 1)
    return text[: len(words[0])] if len(words) > 1 else ""


def redact_items(items: Iterable[str]) -> list[str]:
    """Return the strings of a list without secrets; a list can be a command line.

    After ``--token`` the next one is covered.
    """
    shown: list[str] = []
    before = ""
    for item in items:
        option = before.startswith("-") and "=" not in before and is_secret(before)
        if option and not item.startswith("-"):
            shown.append(MARK)
        elif before in _USER_OPTIONS and _USER.fullmatch(f'-u "{item}'):
            shown.append(f"{item.partition(':')[0]}:{MARK}")
        else:
            shown.append(redact(item, True))
        before = item
    return shown


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


def redact_data(value: Any, name: str = "", secret: bool = False) -> Any:
    """Return JSON data without secrets, by the names of their members and by what strings hold.

    All that lies below the name of a secret, or of a table of headers, is covered.

    :param secret: whether the value lies below such a name.
    """
    secret = secret or is_secret(name) or is_header_table(name)
    if isinstance(value, Mapping):
        named = any(
            str(key).lower() in _NAMES and isinstance(one, str) and is_secret(one)
            for key, one in value.items()
        )
        return {
            key: redact_data(item, str(key), secret or (named and str(key).lower() == "value"))
            for key, item in value.items()
        }
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
