"""Every name of evidence that the source can put into an observation, read from the source itself.

A sink is a call that records evidence. Its argument is followed back to the strings that it may hold: through
variables, loops, parameters, functions, tables of the modules and the `Literal` types of return values. An argument
that leads to no string fails with its place, so that no evidence escapes the test of its sentence.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from svc.identify.model import Attribute
from svc.identify.report import masks, native

ROOT = Path(__file__).parents[2]

SINKS = {
    "findings.add": (1, "evidence"),
    "findings.contradict": (2, "evidence"),
    "_Rule": (1, "evidence"),
    "_Detector": (2, "evidence"),
    "Observation": (2, "evidence"),
    "Attestation": (1, "failures"),
    "Redeemed": (1, "failures"),
}
"""Call -> position and name of its argument that holds evidence."""

MASKED: frozenset[Attribute] = frozenset().union(
    *(value for value in vars(masks).values() if isinstance(value, frozenset))
)

PASSED_ON = ""
"""Stands for names that a sink has recorded before, and that are read back from there."""

ATTRIBUTES: dict[str, set[str]] = {
    "masked": {attribute.name.lower() for attribute in MASKED},
    "device_flags": set(native.FLAGS),
    **{attribute: {PASSED_ON} for attribute in ("evidence", "_evidence", "places", "failures", "attested")},
}
"""Attribute of a record -> the names that it may hold."""

PARTS: dict[type[ast.AST], tuple[str, ...]] = {
    **dict.fromkeys((ast.Tuple, ast.List), ("elts",)),
    **dict.fromkeys((ast.ListComp, ast.GeneratorExp), ("elt",)),
    **dict.fromkeys((ast.FormattedValue, ast.Starred, ast.Subscript), ("value",)),
    **dict.fromkeys((ast.Return, ast.Yield, ast.YieldFrom), ("value",)),
    ast.BinOp: ("left", "right"),
    ast.BoolOp: ("values",),
    ast.Dict: ("keys",),
    ast.DictComp: ("key",),
    ast.IfExp: ("body", "orelse"),
}
"""Kind of expression -> its parts that may hold names."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """A module's source, and what its names stand for."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.functions = {node.name: node for node in tree.body if isinstance(node, Function)}
        self.calls = [(node, function) for node, function in _scoped(tree) if isinstance(node, ast.Call)]

    def named(self, name: str) -> Any:
        return getattr(import_module(self.name), name, getattr(builtins, name, None))


READING = {"svc.features.weights.preview"}
"""Modules that make observations again of what was recorded."""


@cache
def modules() -> dict[str, Module]:
    """The modules of the package that speak of evidence or of what it is made from."""
    found: dict[str, Module] = {}
    for folder in ("svc/identify", "svc/features/identification"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            if name in READING:
                continue
            found[name] = Module(name, ast.parse(path.read_text()))
    return found


def evidence_names() -> set[str]:
    """All names that may be recorded anywhere."""
    return recorded_names(modules().values())


def recorded_names(read: Iterable[Module]) -> set[str]:
    """All names that the sinks in these modules may record. Raises `AssertionError` where that cannot be told."""
    names: set[str] = set()
    for module in read:
        for call, function in module.calls:
            sink = SINKS.get(ast.unparse(call.func))
            if sink is None:
                continue
            position, keyword = sink
            given = [*call.args[position : position + 1], *(kw.value for kw in call.keywords if kw.arg == keyword)]
            if given:
                found = set[str]().union(*map(Search(module, function).values, given))
                assert found, f"{module.name}:{call.lineno}: {ast.unparse(call)}: cannot tell which names this records"
                names |= found
    return names - {PASSED_ON}


@cache
def context_names() -> set[str]:
    """Where questions are asked once more: what the adapters' one converter makes of `Claims.contexts`."""
    return returned_names("svc.identify.report.canonical", "contexts")


def returned_names(module: str, function: str) -> set[str]:
    """All strings that a function may return, or that may be in what it returns."""
    return Search(modules()[module], None).returned(function)


def keyword_values(callee: str, keyword: str) -> set[str]:
    """All strings that are given as this keyword to calls of this name."""
    return {
        name
        for module in modules().values()
        for call, function in module.calls
        if ast.unparse(call.func) == callee
        for given in call.keywords
        if given.arg == keyword
        for name in Search(module, function).values(given.value)
    }


class Search:
    """Follows expressions of one function, or of the module where it is `None`. Containers stand for what they hold,
    dictionaries for their keys.
    """

    def __init__(self, module: Module, function: Function | None, seen: set[object] | None = None) -> None:
        self.module = module
        self.function = function
        self.seen: set[object] = set() if seen is None else seen

    def values(self, node: ast.AST | None) -> set[str]:
        match node:
            case ast.Constant(value=str(text)):
                return {text}
            case ast.JoinedStr(values=parts):
                return {"".join(chosen) for chosen in product(*map(self.values, parts))}
            case ast.Name(id=name):
                return self._variable(name)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Call():
                return self._call(node)
            case _:
                return self._all(_parts(node))

    def _attribute(self, node: ast.Attribute) -> set[str]:
        if node.attr == "contexts":
            return context_names()
        return self.values(node.value) if node.attr == "name" else ATTRIBUTES.get(node.attr, set())

    def _all(self, nodes: Iterable[ast.AST | None]) -> set[str]:
        return set[str]().union(*map(self.values, nodes))

    def _variable(self, name: str) -> set[str]:
        if self.function is not None:
            variable = (self.module.name, self.function.name, name)
            if variable in self.seen:
                return set()
            self.seen.add(variable)
            bound = [*_bindings(self.function, name)]
            parameters = [argument.arg for argument in self.function.args.args]
            if name in parameters:
                return self._all(bound) | self._passed(self.function, parameters.index(name))
            if bound:
                return self._all(bound)
        return _strings(self.module.named(name))

    def _passed(self, function: Function, position: int) -> set[str]:
        """What calls give as this parameter, wherever they stand."""
        target = self.module.named(function.name)
        return {
            name
            for module in modules().values()
            for call, caller in module.calls
            if isinstance(call.func, ast.Name) and call.func.id == function.name and len(call.args) > position
            if module.named(function.name) is target
            for name in Search(module, caller, self.seen).values(call.args[position])
        }

    def _call(self, call: ast.Call) -> set[str]:
        match call.func:
            case ast.Attribute(value=ast.Name(id=table), attr="get") if isinstance(self.module.named(table), dict):
                return _strings(tuple(self.module.named(table).values()))
            case ast.Attribute(value=inner, attr="items" | "lower"):
                return self.values(inner)
            case ast.Name(id="sorted" | "tuple" | "list" | "zip"):
                return self._all(call.args)
            case ast.Name(id=name):
                return self.returned(name)
            case _:
                return set()

    def returned(self, name: str) -> set[str]:
        """What a function returns or yields; for one of another module, the strings of its return type."""
        function = self.module.functions.get(name)
        if function is not None:
            inner = Search(self.module, function, self.seen)
            ends = [node for node in ast.walk(function) if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom)]
            return inner._all(ends)
        called = self.module.named(name)
        ours = callable(called) and called.__module__.startswith("svc.")
        return set(_literals(get_type_hints(called).get("return"))) if ours else set()


def _scoped(tree: ast.Module) -> Iterator[tuple[ast.AST, Function | None]]:
    """Every node with the function at the top of the module, or the method, that it stands in."""
    for statement in tree.body:
        for part in statement.body if isinstance(statement, ast.ClassDef) else [statement]:
            for node in ast.walk(part):
                yield node, part if isinstance(part, Function) else None


def _parts(node: ast.AST | None) -> Iterator[ast.AST | None]:
    for name in PARTS.get(type(node), ()):
        part = getattr(node, name)
        yield from part if isinstance(part, list) else [part]


def _bindings(function: Function, name: str) -> Iterator[ast.expr | None]:
    """Expressions whose value the variable may hold, or that are put into it."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=targets, value=value) if any(_names(target, name) for target in targets):
                yield value
            case ast.AnnAssign(target=target, value=value) | ast.AugAssign(target=target, value=value):
                if _names(target, name):
                    yield value
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                if _names(target, name):
                    yield value
            case ast.Call(func=ast.Attribute(value=ast.Name(id=bound), attr="append" | "insert")) if bound == name:
                yield node.args[-1]
            case _:
                pass


def _names(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))


def _strings(value: Any) -> set[str]:
    """The strings in a value of a module."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, Enum):
        return {value.name.lower()}
    return set[str]().union(*map(_strings, value)) if isinstance(value, dict | tuple | list | frozenset) else set()


def _literals(kind: Any) -> Iterator[str]:
    for inner in get_args(kind):
        if get_origin(kind) is Literal:
            yield inner
        else:
            yield from _literals(inner)
