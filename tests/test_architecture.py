"""The rules of the house, read from the source itself: who may import whom, and how large things may grow."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted(path for package in ("svc", "svc_replay") for path in (ROOT / package).rglob("*.py"))

ROOMS = {
    "svc.__main__": {"svc.cli"},
    "svc.world": set(),
    "svc.kernel": {"svc.world"},
    "svc.identify": {"svc.kernel", "svc.world"},
    "svc.workers": {"svc.identify", "svc.kernel", "svc.world"},
    "svc.http": {"svc.workers", "svc.identify", "svc.kernel", "svc.world"},
    "svc.command": {"svc.http", "svc.workers", "svc.identify", "svc.kernel", "svc.world"},
    "svc.features": {"svc.command", "svc.http", "svc.workers", "svc.identify", "svc.kernel", "svc.world"},
    "svc.serve": {"svc.command", "svc.features", "svc.http", "svc.workers", "svc.identify", "svc.kernel", "svc.world"},
    "svc.cli": {
        "svc.serve", "svc.features", "svc.command", "svc.http", "svc.workers", "svc.identify", "svc.kernel",
        "svc.world",
    },
    "svc_replay": {
        "svc.serve", "svc.features", "svc.command", "svc.http", "svc.identify", "svc.kernel", "svc.world",
    },
}  # fmt: skip
"""room -> the rooms it may import, itself beside them. No room may import `svc_replay`: `svc` finds it by its name."""

ONLY_IN = {
    "lmdb": ("svc/kernel/store/lmdb/",),
    "quart": ("svc/http/pages/app.py", "svc/cli/develop/docs.py"),
    "quart_trio": ("svc/http/pages/app.py", "svc/cli/develop/docs.py"),
    "hypercorn": ("svc/cli/develop/docs.py",),
    "authlib": ("svc/features/members/sign_in/provider.py",),
    "joserfc": ("svc/features/members/sign_in/provider.py",),
    "httpcore": (
        "svc/features/webhooks/transport/",
        "svc/features/members/sign_in/provider.py",
        "svc/identify/network_data/update.py",
    ),
    "certifi": ("svc/features/webhooks/transport/",),
    "time": ("svc/world.py",),
    "secrets": ("svc/world.py",),
    "random": ("svc/world.py",),
    "uuid": ("svc/world.py",),
    "psycopg": ("svc/kernel/store/postgresql/",),
    "iporigin": ("svc/identify/network_data/lookup.py",),
    "maxminddb": ("svc/identify/network_data/lists.py",),
    "prometheus_client": ("svc/serve/metrics/registry.py", "svc/serve/metrics/samples.py"),
    "ua_parser": ("svc/identify/useragent",),
    "cel_expr_python": ("svc/features/rules/language/language.py",),
    "re2": ("svc/features/rules/language/literals.py",),
    "tzdata": ("svc/identify/network/timezones.py",),
    "argon2": ("svc/features/members/sign_in/passwords.py",),
    "zxcvbn": ("svc/features/members/sign_in/passwords.py",),
    "zoneinfo": ("svc/identify/network/timezones.py",),
}
"""module -> where alone it may be imported (`uuid` for making ids: the type UUID may be named anywhere)."""

KINDS = ("pure", "tables", "queries", "jobs", "invariants", "actor", "bodies", "routes", "command")
"""What a module of a feature, or of identify, does: each imports what stands before it. The last word of its name says
it, and one without such a word is pure, but for those of `KIND_OF`.
"""
KIND_OF = {
    "svc.identify.invariants": "invariants",
    "svc.identify.indexing.indexer": "actor",
    "svc.identify.network_data": "actor",
    "svc.features.identification.pipeline": "actor",
    "svc.identify.queries": "queries",
    "svc.identify.recording": "jobs",
    "svc.identify.tables": "tables",
    "svc.features.accounts.recounter": "actor",
    "svc.features.backup": "invariants",
    "svc.features.billing.credit_watch": "actor",
    "svc.features.checks": "invariants",
    "svc.features.inspection": "invariants",
    "svc.features.billing.settler": "actor",
    "svc.features.contracts": "queries",
    "svc.features.erasure": "jobs",
    "svc.features.erasure.tables": "tables",
    "svc.features.events.archived_document": "bodies",
    "svc.features.events.live": "actor",
    "svc.features.events.source": "command",
    "svc.features.events.text": "command",
    "svc.features.exports.event_files": "command",
    "svc.features.exports.hourly": "command",
    "svc.features.exports.sql_events": "jobs",
    "svc.features.exports.sql_installation": "jobs",
    "svc.features.feed.pages": "actor",
    "svc.features.identification.hints": "jobs",
    "svc.features.identification.transaction": "jobs",
    "svc.features.members.sign_in.provider": "actor",
    "svc.features.members.sign_in.entering": "routes",
    "svc.features.quarantine.jobs": "invariants",
    "svc.features.retention.sweeper": "actor",
    "svc.features.rules.command": "command",
    "svc.features.rules.compiling": "routes",
    "svc.features.schema": "invariants",
    "svc.features.rules.routes": "routes",
    "svc.features.upgrade": "invariants",
    "svc.features.upgrade.migrations": "jobs",
    "svc.features.inspection.subject_rows": "invariants",
    "svc.features.webhooks.commands": "command",
    "svc.features.webhooks.jobs": "jobs",
    "svc.features.webhooks.routes": "routes",
    "svc.features.webhooks.sending": "actor",
    "svc.features.webhooks.transport": "actor",
    "svc.kernel.access": "pure",
    "svc.command": "command",
    "svc.kernel.config": "pure",
    "svc.kernel.config_loading": "pure",
    "svc.http": "routes",
    "svc.http.schema": "bodies",
    "svc.kernel.limits": "pure",
    "svc.kernel.net": "pure",
    "svc.kernel.store": "store",
    "svc.kernel.tenants": "pure",
    "svc.kernel.values": "pure",
    "svc.kernel.work": "actor",
    "svc.workers": "actor",
}
"""Of modules and packages whose names do not say it."""

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
    "svc",
}

MAX_MODULE_LINES = 450
MAX_FUNCTION_LINES = 70
MAX_MODULES_OF_A_FOLDER = 15


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def kind_of(path: Path) -> str | None:
    """Of `KINDS`, or `store`; `None` outside of kernel, identify and features."""
    name = name_of(path)
    if path.name == "__init__.py" and name.startswith("svc.features"):
        return "pure"  # it declares what the feature has, by name
    last = name.rsplit(".", 1)[-1].rsplit("_", 1)[-1]
    by_name = name.startswith(("svc.identify", "svc.features", "svc.kernel.access", "svc.kernel.tenants"))
    if name not in KIND_OF and last in KINDS and by_name:
        return last
    of = (part for part in sorted(KIND_OF, key=len, reverse=True) if name == part or name.startswith(part + "."))
    return next((KIND_OF[part] for part in of), "pure" if name.startswith(("svc.identify", "svc.features")) else None)


@cache
def imports(path: Path) -> list[tuple[str, list[str], int]]:
    """(module, names taken from it, line) of every import that runs; those for type checkers are left out."""
    found: list[tuple[str, list[str], int]] = []
    for node in _statements(parsed(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, [], node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            found.append((node.module, [alias.name for alias in node.names], node.lineno))
    return found


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All that run; expressions, ten times as many nodes, are not looked into."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, part, ()):
            if isinstance(inner, ast.If) and isinstance(inner.test, ast.Name) and inner.test.id == "TYPE_CHECKING":
                continue
            if isinstance(inner, ast.stmt):
                yield inner
            yield from _statements(inner)


def layer_of(module: str) -> str | None:
    return next((layer for layer in ROOMS if module == layer or module.startswith(layer + ".")), None)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.slow(2.3)
def test_a_module_imports_only_what_its_layer_may():
    faults: list[str] = []
    for path in MODULES:
        mine = layer_of(name_of(path))
        for module, _, line in imports(path):
            theirs = layer_of(module)
            if theirs is not None and theirs != mine and (mine is None or theirs not in ROOMS[mine]):
                faults.append(f"{path}:{line}: {mine or 'the package itself'} may not import {module}")
    assert not faults, "\n".join(faults)


def test_modules_with_external_effects_are_imported_only_in_their_place():
    faults: list[str] = []
    for path in MODULES:
        for module, names, line in imports(path):
            places = ONLY_IN.get(module.split(".")[0], ("",))
            if not path.relative_to(ROOT).as_posix().startswith(places) and (module, names) != ("uuid", ["UUID"]):
                faults.append(f"{path}:{line}: {module} belongs in {', '.join(places)}")
    assert not faults


def test_a_module_imports_only_kinds_before_its_own():
    """Inside of identify and the features the layers hold by name: what decides imports nothing that reads."""
    paths = {name_of(path): path for path in MODULES}
    faults: list[str] = []
    for path in MODULES:
        mine = kind_of(path)
        if not name_of(path).startswith(("svc.identify", "svc.features")):
            continue
        for module, names, line in imports(path):
            for target in {f"{module}.{name}" for name in names} & paths.keys() or {module} & paths.keys():
                theirs = kind_of(paths[target])
                if mine in KINDS and theirs in KINDS and KINDS.index(theirs) > KINDS.index(mine):
                    faults.append(f"{path}:{line}: {mine} may not import {theirs} ({target})")
    assert not faults, "\n".join(faults)


def test_no_private_module_or_name_of_a_library_is_imported():
    faults: list[str] = []
    for path in MODULES:
        for module, names, line in imports(path):
            if module != "__future__" and layer_of(module) is None:
                private = [part for part in (*module.split("."), *names) if part.startswith("_")]
                faults += [f"{path}:{line}: {name} of {module} is private" for name in private]
    assert not faults


OTHER_STEPS = {
    "about sockets": ("serve/serving.py", "http/server/listening.py", "workers/bus.py", "cli/develop/dev.py",
                      "cli/develop/docs.py"),
    "with a step of their own": ("kernel/config_loading.py", "kernel/store/files/durable_files.py",
                                 "kernel/store/lmdb/engine.py", "features/upgrade/release.py", "command/output.py",
                                 "features/upgrade/trial.py", "cli/serve/health_checks.py", "cli/__init__.py"),
}  # fmt: skip


def test_messages_about_files_say_what_to_do_in_the_same_words():
    others = {f"svc/{name}" for names in OTHER_STEPS.values() for name in names} | {"svc/kernel/values/errors.py"}
    found = {path.relative_to(ROOT).as_posix() for path in MODULES if ".strerror" in path.read_text()}
    assert found <= others, f"use `cause` or `explained` of svc/kernel/values/errors.py: {found - others}"


def test_the_domain_is_pure():
    faults: list[str] = []
    for path in (path for path in MODULES if kind_of(path) == "pure"):
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


@pytest.mark.slow(0.5)
def test_nothing_that_a_job_or_a_condition_calls_changes_the_state_of_a_module():
    """Jobs of one group are repeated on the writer's thread while the loop goes on, and conditions are evaluated on
    both: what one call leaves in a module is another's. Caches of pure functions are no state.
    """
    faults: list[str] = []
    for path in (path for path in MODULES if kind_of(path) in ("pure", "tables", "queries", "jobs", "store")):
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
    transactions = [path for path in MODULES if kind_of(path) in ("queries", "jobs", "checks")]
    assert len(transactions) > 50
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
            if module == "svc.serve.service":
                assert name_of(path).startswith(("svc.cli", "svc.serve.serving", "svc_replay")), f"{path}:{line}"


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


def test_no_folder_has_more_modules_than_a_reader_looks_through():
    modules = (path.parent for path in MODULES if path.name != "__init__.py")
    assert [(str(folder), count) for folder, count in Counter(modules).items() if count > MAX_MODULES_OF_A_FOLDER] == []


def test_no_module_has_a_meaningless_name():
    nothing = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base"}
    assert not [path for path in MODULES if path.stem in nothing]


def test_the_module_graph_has_no_cycle_between_packages():
    for layer, allowed in ROOMS.items():
        for other in allowed:
            assert layer not in ROOMS[other], f"{layer} and {other} import each other"


@pytest.mark.parametrize("package", ["svc.kernel.store", "svc.http", "svc.identify"])
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


IN_BOTH_WAYS = {
    ("accounts", "reviews"), ("billing", "organizations"), ("events", "labels"),
    ("labels", "rules"), ("lists", "rules"), ("rules", "webhooks"),
}  # fmt: skip
"""Features that know each other: rules look lists up, and a list says which rules read it."""


def test_no_other_two_features_import_each_other():
    folder = "svc.features"
    arrows: set[tuple[str, str]] = set()
    for path in MODULES:
        importer = child_of(folder, name_of(path))
        for module, taken, _ in imports(path):
            targets = {child_of(folder, module)} if module != folder else set(taken)
            arrows |= {(importer, target) for target in targets if importer and target and importer != target}
    both = {tuple(sorted(arrow)) for arrow in arrows if arrow[::-1] in arrows and "registry" not in arrow}
    assert both == IN_BOTH_WAYS


def child_of(package: str, module: str) -> str | None:
    """The direct child of a package that a module is, or lies in; `None` for one outside of the package."""
    return module.removeprefix(package + ".").split(".")[0] if module.startswith(package + ".") else None
