"""The rules of the house, read from the source itself: who may import whom, and how large things may grow."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "svc").rglob("*.py"))

LAYERS = {
    "svc.world": set(),
    "svc.config": {"svc.domain"},
    "svc.domain": set(),
    "svc.network_data": {"svc.domain"},
    "svc.webhook_transport": {"svc.domain"},
    "svc.store": {"svc.domain", "svc.world"},
    "svc.actors": {"svc.store", "svc.domain", "svc.world", "svc.network_data"},
    "svc.http": {"svc.actors", "svc.store", "svc.domain", "svc.world"},
    "svc.seat": set(),
    "svc.siblings": {"svc.store", "svc.domain", "svc.world", "svc.seat"},
    "svc.relay": {"svc.actors", "svc.siblings", "svc.domain"},
    "svc.figures": {"svc.domain"},
    "svc.census": {"svc.store", "svc.domain"},
    "svc.store_metrics": {"svc.figures", "svc.store"},
    "svc.node_metrics": {"svc.figures", "svc.store"},
    "svc.metrics": {
        "svc.http", "svc.actors", "svc.store", "svc.domain", "svc.world", "svc.seat", "svc.siblings", "svc.figures",
        "svc.census", "svc.store_metrics", "svc.node_metrics",
    },
    "svc.service": {
        "svc.metrics", "svc.http", "svc.actors", "svc.store", "svc.domain", "svc.world", "svc.config",
        "svc.network_data", "svc.webhook_transport", "svc.seat", "svc.siblings", "svc.relay", "svc.node_metrics",
    },
    "svc.serving": {"svc.service", "svc.http", "svc.domain", "svc.config"},
    "svc.parent": {"svc.world", "svc.seat"},
    "svc.cli": {
        "svc.serving", "svc.parent", "svc.service", "svc.metrics", "svc.http", "svc.actors", "svc.store", "svc.domain",
        "svc.world", "svc.config", "svc.network_data", "svc.webhook_transport", "svc.seat", "svc.siblings", "svc.relay",
        "svc.node_metrics",
    },
}  # fmt: skip
"""layer -> the layers it may import, itself beside them."""

ONLY_IN = {
    "lmdb": ("svc/store/lmdb/",),
    "quart": ("svc/http/app.py", "svc/http/edge.py"),
    "quart_trio": ("svc/http/app.py", "svc/http/edge.py"),
    "hypercorn": ("svc/http/",),
    "httpcore": ("svc/webhook_transport/", "svc/network_data/fetch.py"),
    "certifi": ("svc/webhook_transport/",),
    "time": ("svc/world.py",),
    "secrets": ("svc/world.py",),
    "random": ("svc/world.py",),
    "uuid": ("svc/world.py",),
    "psycopg": ("svc/store/postgresql/",),
    "iporigin": ("svc/network_data/builtin.py",),
    "maxminddb": ("svc/network_data/mmdb.py",),
    "prometheus_client": ("svc/metrics.py",),
    "ua_parser": ("svc/domain/useragent",),
    "crawleruseragents": ("svc/domain/useragent",),
    "tzdata": ("svc/domain/timezones.py",),
    "zoneinfo": ("svc/domain/timezones.py",),
}
"""module -> where alone it may be imported (`uuid` for making ids: the type UUID may be named anywhere)."""

DOMAIN_MAY_IMPORT = {
    "msgspec",
    "blake3",
    "cryptography",
    "idna",
    "isal",
    "tzdata",
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


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_what_its_layer_may(path: Path):
    mine = layer_of(name_of(path))
    for module, _, line in imports(path):
        theirs = layer_of(module)
        if theirs is not None and theirs != mine:
            assert mine is not None, f"{path}:{line}: the package itself imports {module}"
            assert theirs in LAYERS[mine], f"{path}:{line}: {mine} may not import {module}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_what_reaches_outside_is_imported_in_its_own_place_only(path: Path):
    relative = path.relative_to(ROOT).as_posix()
    for module, names, line in imports(path):
        places = ONLY_IN.get(module.split(".")[0])
        if places is None or (module == "uuid" and names == ["UUID"]):
            continue
        assert relative.startswith(places), f"{path}:{line}: {module} belongs in {', '.join(places)}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_private_module_or_name_of_a_library_is_imported(path: Path):
    for module, names, line in imports(path):
        if module != "__future__" and layer_of(module) is None:
            private = [part for part in (*module.split("."), *names) if part.startswith("_")]
            assert not private, f"{path}:{line}: {', '.join(private)} of {module} is private"


@pytest.mark.parametrize("path", [path for path in MODULES if "domain" in path.parts], ids=name_of)
def test_the_domain_is_pure(path: Path):
    import sys

    for module, _, line in imports(path):
        top = module.split(".")[0]
        known = top in sys.stdlib_module_names or top in DOMAIN_MAY_IMPORT
        assert known, f"{path}:{line}: the domain may not import {module}"
        assert top not in ("trio", "asyncio", "socket", "threading", "os"), f"{path}:{line}: {module} is not pure"


@pytest.mark.parametrize("path", [path for path in MODULES if "transactions" in path.parts], ids=name_of)
def test_transactions_know_no_event_loop(path: Path):
    assert all(module.split(".")[0] != "trio" for module, _, _ in imports(path))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_the_package_needs_nothing_that_is_not_in_the_wheel(path: Path):
    for module, _, line in imports(path):
        assert module.split(".")[0] not in ("tools", "tests", "bench"), f"{path}:{line}: {module} is not shipped"
        assert module not in ("ast", "inspect"), f"{path}:{line}: sources may not be there to be read"


def test_nothing_imports_the_composition_root_but_what_runs_it():
    for path in MODULES:
        for module, _, line in imports(path):
            if module == "svc.service":
                assert name_of(path).startswith(("svc.cli", "svc.serving")), f"{path}:{line}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_and_functions_stay_small_and_say_what_they_are_for(path: Path):
    lines = path.read_text().count("\n")
    assert lines <= MAX_MODULE_LINES, f"{path} has {lines} lines: it holds two things"
    tree = parsed(path)
    if tree.body:
        assert ast.get_docstring(tree), f"{path} does not say what may live there"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno
            assert length <= MAX_FUNCTION_LINES, f"{path}:{node.lineno}: {node.name} has {length} lines"


def test_no_module_has_a_name_that_says_nothing():
    nothing = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base"}
    assert not [path for path in MODULES if path.stem in nothing]


def test_the_graph_of_modules_has_no_cycle_between_packages():
    for layer, allowed in LAYERS.items():
        for other in allowed:
            assert layer not in LAYERS[other], f"{layer} and {other} import each other"
