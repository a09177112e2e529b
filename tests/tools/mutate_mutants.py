# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small defects of a Python source file, each as a text that takes the place of a piece of it.

The text of a message is left alone: messages are read by people. So is what Python does not
evaluate (annotations). A string is changed only where it decides: compared, looked up, a key.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitOr: "&",
    ast.BitAnd: "|",
}
_OTHER_FUNCTION = {"any": "all", "all": "any", "min": "max", "max": "min", "sorted": "list"}
# Methods that tidy a text: without them the text stays as it is.
_TIDYING = {"strip", "lstrip", "rstrip", "lower", "upper", "casefold"}
# Methods whose argument is a name that decides.
_LOOKING_UP = {
    "endswith", "get", "partition", "pop", "removeprefix", "removesuffix", "rpartition", "split",
    "startswith",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A defect: ``old`` at byte ``start`` of the source, in ``line``, becomes ``new``."""

    line: int
    start: int
    old: str
    new: str
    what: str

    def apply(self, source: str) -> str:
        """Return the source with the defect."""
        data = source.encode()
        end = self.start + len(self.old.encode())
        return (data[: self.start] + self.new.encode() + data[end:]).decode()


def mutants(source: str) -> list[Mutant]:
    """Return all defects of a source, in its order. Few of them are no other program."""
    found = set(_Finder(source).of(ast.parse(source)))
    return sorted(found, key=lambda one: (one.start, one.old, one.new))


def is_another_program(source: str, mutant: Mutant) -> bool:
    """Return whether Python reads the source with the defect, and otherwise than without."""
    try:
        changed = ast.parse(mutant.apply(source))
    except SyntaxError:
        return False
    return ast.dump(changed) != ast.dump(ast.parse(source))


class _Finder:
    def __init__(self, source: str) -> None:
        self._data = source.encode()
        lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line.encode()))

    def _span(self, node: ast.AST) -> tuple[int, int]:
        begin = self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return begin, end

    def _text(self, node: ast.AST) -> str:
        begin, end = self._span(node)
        return self._data[begin:end].decode()

    def _instead(self, node: ast.AST, new: str, what: str) -> Mutant:
        begin, _end = self._span(node)
        return Mutant(node.lineno, begin, self._text(node), new, what)  # type: ignore[attr-defined]

    def of(self, node: ast.AST, parent: ast.AST | None = None) -> Iterator[Mutant]:
        """Yield the defects of a node and of all below it that Python evaluates."""
        here = getattr(self, f"_of_{type(node).__name__}", None)
        if here is not None:
            yield from here(node, parent)
        for child in _evaluated(node):
            yield from self.of(child, node)

    # Statements

    def _removed(self, node: ast.stmt, _parent: object) -> Iterator[Mutant]:
        yield self._instead(node, "pass", "statement removed")

    _of_Raise = _of_Continue = _of_Break = _of_AugAssign = _of_Delete = _removed

    def _of_Expr(self, node: ast.Expr, parent: object) -> Iterator[Mutant]:
        if not isinstance(node.value, (ast.Constant, ast.Yield, ast.YieldFrom)):
            yield from self._removed(node, parent)

    def _of_Return(self, node: ast.Return, parent: object) -> Iterator[Mutant]:
        # The only statement of a function: its removal is seen by any test that calls it.
        alone = isinstance(parent, ast.FunctionDef) and _first(parent) is node
        if not alone:
            yield from self._removed(node, parent)

    def _of_Assign(self, node: ast.Assign, parent: object) -> Iterator[Mutant]:
        # Without the first value of a variable nothing runs: not worth a run.
        if isinstance(node.targets[0], (ast.Attribute, ast.Subscript)):
            yield from self._removed(node, parent)

    def _of_If(self, node: ast.If | ast.While | ast.IfExp, _parent: object) -> Iterator[Mutant]:
        if isinstance(node.test, (ast.Compare, ast.BoolOp)):
            # Their operators are changed one by one.
            return
        if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
            return
        yield self._instead(node.test, f"not ({self._text(node.test)})", "condition turned round")

    _of_While = _of_IfExp = _of_If

    def _of_For(self, node: ast.For, _parent: object) -> Iterator[Mutant]:
        last = node.body[-1]
        if isinstance(last, (ast.Break, ast.Return, ast.Raise, ast.Continue)):
            return
        indent = " " * node.body[0].col_offset
        new = f"{self._text(last)}\n{indent}break"
        yield self._instead(last, new, "loop ends after one round")

    def _of_ExceptHandler(self, node: ast.ExceptHandler, _parent: object) -> Iterator[Mutant]:
        if not isinstance(node.body[0], ast.Raise):
            yield self._instead(node.body[0], "raise", "exception not handled")

    # Expressions

    def _of_comprehension(self, node: ast.comprehension, _parent: object) -> Iterator[Mutant]:
        for test in node.ifs:
            yield self._instead(test, "True", "filter removed")

    def _of_Compare(self, node: ast.Compare, _parent: object) -> Iterator[Mutant]:
        operands = [node.left, *node.comparators]
        for place, operator in enumerate(node.ops):
            left, right = operands[place], operands[place + 1]
            for new in _COMPARISONS[type(operator)]:
                begin, end = self._span(left)[0], self._span(right)[1]
                text = f"{self._text(left)} {new} {self._text(right)}"
                old = self._data[begin:end].decode()
                yield Mutant(left.lineno, begin, old, text, "comparison")

    def _of_BoolOp(self, node: ast.BoolOp, _parent: object) -> Iterator[Mutant]:
        word = "and" if isinstance(node.op, ast.And) else "or"
        other = "or" if word == "and" else "and"
        texts = [f"({self._text(value)})" for value in node.values]
        yield self._instead(node, f"({f' {other} '.join(texts)})", f"{word} becomes {other}")
        for place in range(len(texts)):
            rest = texts[:place] + texts[place + 1 :]
            yield self._instead(node, f"({f' {word} '.join(rest)})", f"operand of {word} removed")

    def _of_UnaryOp(self, node: ast.UnaryOp, _parent: object) -> Iterator[Mutant]:
        if isinstance(node.op, (ast.Not, ast.USub)):
            yield self._instead(node, f"({self._text(node.operand)})", "sign or not removed")

    def _of_BinOp(self, node: ast.BinOp, _parent: object) -> Iterator[Mutant]:
        new = _ARITHMETIC.get(type(node.op))
        texts = any(_is_text(side) for side in (node.left, node.right))
        if new and not texts:
            text = f"({self._text(node.left)}) {new} ({self._text(node.right)})"
            yield self._instead(node, f"({text})", "arithmetic")

    def _of_Call(self, node: ast.Call, _parent: object) -> Iterator[Mutant]:
        function = node.func
        if isinstance(function, ast.Name) and function.id in _OTHER_FUNCTION and not node.keywords:
            yield self._instead(function, _OTHER_FUNCTION[function.id], "another function")
        if isinstance(function, ast.Attribute) and function.attr in _TIDYING:
            yield self._instead(node, self._text(function.value), "text not tidied")

    def _of_Constant(self, node: ast.Constant, parent: ast.AST | None) -> Iterator[Mutant]:
        value = node.value
        if isinstance(value, bool):
            yield self._instead(node, str(not value), "constant")
        elif isinstance(value, int):
            yield self._instead(node, str(value + 1), "constant")
        elif isinstance(value, (str, bytes)) and _decides(node, parent):
            more = value + ("~" if isinstance(value, str) else b"~")  # type: ignore[operator]
            yield self._instead(node, repr(more), "constant")


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node but for messages, annotations, decorators, imports."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)):
        return
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name.endswith("Error") or name == "TypeVar":
            return
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
        # An alias of a type, such as Optional[str].
        name = getattr(node.value.value, "id", "")
        if name in {"Callable", "Dict", "List", "Literal", "Optional", "Tuple", "Union"}:
            return
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "type_params", "ctx"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


def _first(function: ast.FunctionDef) -> ast.stmt:
    body = function.body
    with_text = len(body) > 1 and isinstance(body[0], ast.Expr)
    return body[1] if with_text else body[0]


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )


def _decides(node: ast.Constant, parent: ast.AST | None) -> bool:
    """Return whether a string is compared, looked up or a key."""
    if any(blank in repr(node.value) for blank in (" ", "\\n")):
        return False
    if isinstance(parent, ast.Call):
        looks_up = isinstance(parent.func, ast.Attribute) and parent.func.attr in _LOOKING_UP
        return looks_up and parent.args[:1] == [node]
    if isinstance(parent, ast.Dict):
        return node in parent.keys
    return isinstance(parent, (ast.Compare, ast.Subscript))
