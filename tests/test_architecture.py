"""The rules of the house, read from the source itself: who may import whom, and how large things may grow."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "svc").rglob("*.py"))

LAYERS = {
    "svc.__main__": {"svc.cli"},
    "svc.world": set(),
    "svc.domain": set(),
    "svc.config": {"svc.domain"},
    "svc.config_loading": {"svc.config", "svc.domain"},
    "svc.network_data": {"svc.domain"},
    "svc.webhook_transport": {"svc.domain"},
    "svc.openid": {"svc.config", "svc.domain"},
    "svc.store": {"svc.domain", "svc.world"},
    "svc.actors": {"svc.store", "svc.domain", "svc.world", "svc.network_data"},
    "svc.workers": {"svc.actors", "svc.store", "svc.domain", "svc.world"},
    "svc.http": {"svc.workers", "svc.actors", "svc.store", "svc.domain", "svc.world"},
    "svc.metrics": {"svc.http", "svc.workers", "svc.actors", "svc.store", "svc.domain", "svc.world"},
    "svc.service_parts": {
        "svc.actors", "svc.store", "svc.domain", "svc.world", "svc.config", "svc.network_data", "svc.webhook_transport",
        "svc.openid",
    },
    "svc.service": {
        "svc.service_parts",
        "svc.metrics", "svc.http", "svc.workers", "svc.actors", "svc.store", "svc.domain", "svc.world", "svc.config",
        "svc.network_data", "svc.webhook_transport", "svc.openid",
    },
    "svc.serving": {"svc.service", "svc.http", "svc.workers", "svc.domain", "svc.config"},
    "svc.cli": {
        "svc.serving", "svc.service", "svc.service_parts", "svc.metrics", "svc.http", "svc.workers", "svc.actors",
        "svc.store", "svc.domain",
        "svc.world", "svc.config", "svc.config_loading", "svc.network_data", "svc.webhook_transport",
    },
}  # fmt: skip
"""layer -> the layers it may import, itself beside them."""

ONLY_IN = {
    "lmdb": ("svc/store/lmdb/",),
    "quart": ("svc/http/pages/app.py", "svc/cli/develop/docs.py"),
    "quart_trio": ("svc/http/pages/app.py", "svc/cli/develop/docs.py"),
    "hypercorn": ("svc/cli/develop/docs.py",),
    "authlib": ("svc/openid/",),
    "joserfc": ("svc/openid/",),
    "httpcore": ("svc/webhook_transport/", "svc/openid/", "svc/network_data/fetch.py"),
    "certifi": ("svc/webhook_transport/",),
    "time": ("svc/world.py",),
    "secrets": ("svc/world.py",),
    "random": ("svc/world.py",),
    "uuid": ("svc/world.py",),
    "psycopg": ("svc/store/postgresql/",),
    "iporigin": ("svc/network_data/lookup.py",),
    "maxminddb": ("svc/network_data/mmdb.py",),
    "prometheus_client": ("svc/metrics/registry.py", "svc/metrics/exposition.py"),
    "ua_parser": ("svc/domain/useragent",),
    "cel_expr_python": ("svc/domain/rules/language.py",),
    "re2": ("svc/domain/rules/patterns.py",),
    "crawleruseragents": ("svc/domain/useragent",),
    "tzdata": ("svc/domain/network/timezones.py",),
    "argon2": ("svc/domain/access/passwords.py",),
    "zxcvbn": ("svc/domain/access/passwords.py",),
    "zoneinfo": ("svc/domain/network/timezones.py",),
}
"""module -> where alone it may be imported (`uuid` for making ids: the type UUID may be named anywhere)."""

DOMAIN_MAY_IMPORT = {
    "msgspec",
    "argon2",
    "blake3",
    "cryptography",
    "idna",
    "isal",
    "tzdata",
    "cel_expr_python",
    "re2",
    "zxcvbn",
    "ua_parser",
    "crawleruseragents",
    "svc",
}

MAX_MODULE_LINES = 450
MAX_FUNCTION_LINES = 70


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> list[tuple[str, list[str], int]]:
    """(module, names taken from it, line) of every import that runs; those for type checkers are left out."""
    tree = parsed(path)
    found: list[tuple[str, list[str], int]] = []
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, [], node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            found.append((node.module, [alias.name for alias in node.names], node.lineno))
    return found


def layer_of(module: str) -> str | None:
    return next((layer for layer in LAYERS if module == layer or module.startswith(layer + ".")), None)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.slow(2.3)
def test_a_module_imports_only_what_its_layer_may():
    faults: list[str] = []
    for path in MODULES:
        mine = layer_of(name_of(path))
        for module, _, line in imports(path):
            theirs = layer_of(module)
            if theirs is not None and theirs != mine and (mine is None or theirs not in LAYERS[mine]):
                faults.append(f"{path}:{line}: {mine or 'the package itself'} may not import {module}")
    assert not faults


def test_modules_with_external_effects_are_imported_only_in_their_place():
    faults: list[str] = []
    for path in MODULES:
        for module, names, line in imports(path):
            places = ONLY_IN.get(module.split(".")[0], ("",))
            if not path.relative_to(ROOT).as_posix().startswith(places) and (module, names) != ("uuid", ["UUID"]):
                faults.append(f"{path}:{line}: {module} belongs in {', '.join(places)}")
    assert not faults


def test_no_private_module_or_name_of_a_library_is_imported():
    faults: list[str] = []
    for path in MODULES:
        for module, names, line in imports(path):
            if module != "__future__" and layer_of(module) is None:
                private = [part for part in (*module.split("."), *names) if part.startswith("_")]
                faults += [f"{path}:{line}: {name} of {module} is private" for name in private]
    assert not faults


def test_the_domain_is_pure():
    faults: list[str] = []
    for path in (path for path in MODULES if "domain" in path.parts):
        for module, _, line in imports(path):
            top = module.split(".")[0]
            if top not in sys.stdlib_module_names and top not in DOMAIN_MAY_IMPORT:
                faults.append(f"{path}:{line}: the domain may not import {module}")
            if top in ("trio", "asyncio", "socket", "threading", "os"):
                faults.append(f"{path}:{line}: {module} is not pure")
    assert not faults


CHANGING = frozenset(
    {
        *("append", "appendleft", "add", "clear", "discard", "extend", "insert", "move_to_end", "pop", "popitem"),
        *("remove", "setdefault", "subtract", "update", "__setitem__"),
    }
)
"""Methods that change what they are called on."""


def _module_names(module: ast.Module) -> frozenset[str]:
    """Names that a module assigns at its top."""
    targets = [
        target
        for statement in module.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
    ]
    return frozenset(name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def _root(node: ast.expr) -> str | None:
    """`a` of `a.b[c]`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def changes_of_state(function: ast.AST, names: frozenset[str]) -> Iterator[int]:
    """Lines in a function that change what a module has."""
    for node in ast.walk(function):
        changed: list[ast.expr] = []
        if isinstance(node, ast.Global):
            yield node.lineno
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
            flat = [each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
            changed = [each for each in flat if isinstance(each, ast.Attribute | ast.Subscript)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            changed = [node.func.value]
        if any(_root(each) in names for each in changed):
            yield node.lineno


def test_nothing_that_a_job_or_a_condition_calls_changes_the_state_of_a_module():
    """Jobs of one group are repeated on the writer's thread while the loop goes on, and conditions are evaluated on
    both: what one call leaves in a module is another's. Caches of pure functions are no state.
    """
    faults: list[str] = []
    for path in (path for path in MODULES if {"domain", "store"} & set(path.parts)):
        module = parsed(path)
        names = _module_names(module)
        functions = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        faults += (f"{path}:{line}" for function in functions for line in changes_of_state(function, names))
    assert not faults


def test_a_change_of_a_modules_state_is_found():
    """The test above could fail."""
    module = ast.parse(
        "_now = X()\n_seen = {}\ncount = 0\n"
        "def a(value):\n    _now.values = value\n"
        "def b(value):\n    _seen[value] = 1\n"
        "def c():\n    global count\n    count += 1\n"
        "def d(value):\n    _seen.setdefault(value, 1)\n"
        "def e(value):\n    local = {}\n    local[value] = _seen\n    return local\n"
    )
    names = _module_names(module)
    found = [
        node.name for node in module.body if isinstance(node, ast.FunctionDef) and [*changes_of_state(node, names)]
    ]
    assert found == ["a", "b", "c", "d"]


def test_transactions_do_not_depend_on_the_event_loop():
    transactions = [path for path in MODULES if "transactions" in path.parts]
    assert transactions
    assert not [path for path in transactions for module, _, _ in imports(path) if module.split(".")[0] == "trio"]


def test_the_package_requires_nothing_outside_the_wheel():
    faults: list[str] = []
    for path in MODULES:
        for module, _, line in imports(path):
            if module.split(".")[0] in ("tools", "tests", "bench"):
                faults.append(f"{path}:{line}: {module} is not shipped")
            if module in ("ast", "inspect"):
                faults.append(f"{path}:{line}: sources may not be there to be read")
    assert not faults


def test_only_entry_points_import_the_composition_root():
    for path in MODULES:
        for module, _, line in imports(path):
            if module == "svc.service":
                assert name_of(path).startswith(("svc.cli", "svc.serving")), f"{path}:{line}"


@pytest.mark.slow(0.8)
def test_modules_and_functions_are_small_and_have_docstrings():
    faults: list[str] = []
    for path in MODULES:
        lines = path.read_text().count("\n")
        if lines > MAX_MODULE_LINES:
            faults.append(f"{path} has {lines} lines: it holds two things")
        tree = parsed(path)
        if tree.body and not ast.get_docstring(tree):
            faults.append(f"{path} does not say what may live there")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                length = node.end_lineno - node.lineno
                if length > MAX_FUNCTION_LINES:
                    faults.append(f"{path}:{node.lineno}: {node.name} has {length} lines")
    assert not faults


def test_no_module_has_a_meaningless_name():
    nothing = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base"}
    assert not [path for path in MODULES if path.stem in nothing]


def test_the_module_graph_has_no_cycle_between_packages():
    for layer, allowed in LAYERS.items():
        for other in allowed:
            assert layer not in LAYERS[other], f"{layer} and {other} import each other"


@pytest.mark.parametrize("package", ["svc.domain", "svc.store", "svc.http", "svc.cli"])
def test_no_two_children_of_a_package_import_each_other(package: str):
    """Children are the folders and the modules directly in the package."""
    names = {name_of(path) for path in MODULES}
    arrows: dict[tuple[str, str], str] = {}
    for path in MODULES:
        importer = child_of(package, name_of(path))
        for module, taken, line in imports(path):
            for target in [f"{module}.{name}" for name in taken if f"{module}.{name}" in names] or [module]:
                imported = child_of(package, target)
                if importer and imported and importer != imported:
                    arrows[importer, imported] = f"{path}:{line}"
    assert len(arrows) > 10
    assert not [f"{where} and {arrows[one[::-1]]}" for one, where in arrows.items() if one[::-1] in arrows]


def child_of(package: str, module: str) -> str | None:
    """The direct child of a package that a module is, or lies in; `None` for one outside of the package."""
    return module.removeprefix(package + ".").split(".")[0] if module.startswith(package + ".") else None
