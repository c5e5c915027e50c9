"""What may be changed in a module, and the module with one such change.

What may live here: the operators, over syntax trees alone. Nothing is imported from the code that is changed.

Left alone is what is no behavior: texts, annotations, decorators, options of classes, lines of the log, the arguments
of exceptions, and asserts, which only a fault elsewhere could make fail.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

EXACT_BELOW = 1_000
"""Whole numbers below are counts, wrong by one; those from here on are times and sizes, wrong by half and by twice."""

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Mutant(NamedTuple):
    """One change. It is made again from the source by `node` and `variant`."""

    module: str
    """Path from the root of the tree."""
    line: int
    last_line: int
    """Of the statement, without what stands under it: a test that runs one of these lines may notice."""
    function: str
    """The outermost function that holds it, such as `DeliveryScheduler.take`; empty where it runs when the module is
    imported.
    """
    function_line: int
    before: str
    after: str
    node: int
    variant: int

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.before}  →  {self.after}"


class _Place(NamedTuple):
    line: int
    last_line: int
    function: str
    function_line: int


def mutants(root: Path, module: str) -> list[Mutant]:
    """Every change of a module, in the order of its nodes."""
    tree = ast.parse((root / module).read_text())
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    found: list[Mutant] = []
    for node, place in _places(tree):
        for variant, replacement in enumerate(variants(node)):
            found.append(Mutant(module, *place, _text(node), _text(replacement), numbers[id(node)], variant))
    return found


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """The tree of the module with the change made."""
    tree = ast.parse(source)
    node = list(ast.walk(tree))[mutant.node]
    replacement = ast.copy_location(variants(node)[mutant.variant], node)
    return ast.fix_missing_locations(_Replace(node, replacement).visit(tree))


class _Replace(ast.NodeTransformer):
    def __init__(self, node: ast.AST, replacement: ast.AST) -> None:
        self._node = node
        self._replacement = replacement

    def visit(self, node: ast.AST) -> ast.AST:
        return self._replacement if node is self._node else self.generic_visit(node)


def variants(node: ast.AST) -> list[ast.AST]:
    """What a node may be replaced with. Children are taken over as they are, so that a tree serves once."""
    operator = OPERATORS.get(type(node))
    return [] if operator is None else list(operator(node))


def _compare(node: ast.Compare) -> Iterator[ast.AST]:
    for place, op in enumerate(node.ops):
        for other in COMPARISONS[type(op)]:
            yield ast.Compare(node.left, [*node.ops[:place], other(), *node.ops[place + 1 :]], node.comparators)


def _arithmetic(node: ast.BinOp) -> Iterator[ast.AST]:
    other = ARITHMETIC.get(type(node.op))
    if other is not None:
        yield ast.BinOp(node.left, other(), node.right)


def _both(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _negation(node: ast.UnaryOp) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.Not | ast.USub):
        yield node.operand


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        wrong = (value + 1, value - 1) if abs(value) < EXACT_BELOW else (value * 2, value // 2)
        yield from (ast.Constant(number) for number in wrong)
    elif isinstance(value, float):
        yield from (ast.Constant(number) for number in ((value * 2, value / 2) if value else (1.0,)))


def _call(node: ast.Call) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Name) and node.func.id in CALLS:
        yield ast.Call(ast.Name(CALLS[node.func.id], ast.Load()), node.args, node.keywords)


def _slice(node: ast.Slice) -> Iterator[ast.AST]:
    if node.lower is not None:
        yield ast.Slice(None, node.upper, node.step)
    if node.upper is not None:
        yield ast.Slice(node.lower, None, node.step)


def _condition(node: ast.If | ast.IfExp) -> Iterator[ast.AST]:
    for outcome in (True, False):
        fields = {field: getattr(node, field) for field in node._fields}
        yield type(node)(**fields | {"test": ast.Constant(outcome)})


def _comprehension(node: ast.comprehension) -> Iterator[ast.AST]:
    for place in range(len(node.ifs)):
        yield ast.comprehension(node.target, node.iter, [*node.ifs[:place], *node.ifs[place + 1 :]], node.is_async)


def _return(node: ast.Return) -> Iterator[ast.AST]:
    if node.value is None:
        yield ast.Pass()
    elif not (isinstance(node.value, ast.Constant) and node.value.value is None):
        yield ast.Return(ast.Constant(None))


def _expression(node: ast.Expr) -> Iterator[ast.AST]:
    if not isinstance(node.value, ast.Constant):
        yield ast.Pass()


def _assignment(node: ast.Assign) -> Iterator[ast.AST]:
    """To names alone it is needed: without it the next line fails."""
    if any(isinstance(part, ast.Attribute | ast.Subscript) for target in node.targets for part in ast.walk(target)):
        yield ast.Pass()


def _augmented(node: ast.AugAssign) -> Iterator[ast.AST]:
    yield ast.Pass()
    other = ARITHMETIC.get(type(node.op))
    if other is not None:
        yield ast.AugAssign(node.target, other(), node.value)


def _dropped(_: ast.stmt) -> Iterator[ast.AST]:
    yield ast.Pass()


OPERATORS: dict[type[ast.AST], Callable[..., Iterator[ast.AST]]] = {
    ast.Compare: _compare,
    ast.BinOp: _arithmetic,
    ast.BoolOp: _both,
    ast.UnaryOp: _negation,
    ast.Constant: _constant,
    ast.Call: _call,
    ast.Slice: _slice,
    ast.If: _condition,
    ast.IfExp: _condition,
    ast.comprehension: _comprehension,
    ast.Return: _return,
    ast.Expr: _expression,
    ast.Assign: _assignment,
    ast.AugAssign: _augmented,
    ast.Delete: _dropped,
    ast.Raise: _dropped,
    ast.Continue: _dropped,
    ast.Break: _dropped,
}


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, _Place]]:
    """Every node that may be changed, and where it stands."""

    def walk(node: ast.AST, names: tuple[str, ...], place: _Place) -> Iterator[tuple[ast.AST, _Place]]:
        if isinstance(node, ast.stmt):
            place = place._replace(line=node.lineno, last_line=_header_end(node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = (*names, node.name)
        yield node, place
        for field, child in _children(node):
            inside = place
            if field == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not place.function:
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                inside = place._replace(function=".".join(names), function_line=first)
            yield from walk(child, names, inside)

    yield from walk(tree, (), _Place(1, 1, "", 0))


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Assert | ast.JoinedStr | ast.Raise) or _is_left_alone(node):
        return
    skipped = {"annotation", "returns", "decorator_list"} | ({"keywords"} if isinstance(node, ast.ClassDef) else set())
    if isinstance(node, ast.While) and isinstance(node.test, ast.Constant):
        skipped.add("test")  # an endless loop that is none says nothing, one that becomes endless hangs
    for field, value in ast.iter_fields(node):
        if field not in skipped:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_left_alone(child):
                    yield field, child


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="log")))):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
            return True
        case _:
            return False


def _header_end(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None)
    return max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno or statement.lineno


def _text(node: ast.AST) -> str:
    """One line: of a condition the head alone."""
    if isinstance(node, ast.If):
        return f"if {ast.unparse(node.test)}:"
    if isinstance(node, ast.comprehension):
        return " ".join(["for …", *(f"if {ast.unparse(condition)}" for condition in node.ifs)])
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 100 else f"{text[:97]}..."
