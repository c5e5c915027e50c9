"""What every feature says of itself: a module that the registry does not know has routes that nobody serves, tables
that are never opened, rows that stay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import get_args

import click
import pytest

import svc
from svc.features.erasure.policies import erased, forgetting
from svc.features.feature import HAS, Feature, Kind
from svc.features.refusals import CATALOG
from svc.features.registry import FEATURES
from svc.features.retention.jobs import of_features
from svc.features.tables import TABLES
from svc.kernel.store.schema.table import ErasedBy, Table
from svc.kernel.values.refusals import GENERAL
from tests.test_architecture import parsed

FOLDER = Path(svc.__file__).parent / "features"
BY_NAME = {feature.package.rpartition(".")[2]: feature for feature in FEATURES}
ONLY_NAMED_ELSEWHERE = {"try_page.routes": "it is served and not documented"}


def modules_on_disk(kind: Kind) -> set[str]:
    """Names below `svc.features` of the modules with what this kind asks for; those of tables are known by name."""
    found: set[str] = set()
    for path in FOLDER.rglob("*.py"):
        name = ".".join(path.relative_to(FOLDER).with_suffix("").parts)
        if HAS[kind]:
            made = {target.id for target in _assigned(parsed(path)) if isinstance(target, ast.Name)}
            is_of_kind = HAS[kind] in made and name not in ("checks.invariants", "routes")
        else:
            is_of_kind = path.stem == kind and name != kind
        if is_of_kind:
            found.add(name)
    return found


def _assigned(module: ast.Module) -> Iterator[ast.expr]:
    for node in module.body:
        if isinstance(node, ast.AnnAssign):
            yield node.target
        elif isinstance(node, ast.Assign):
            yield from node.targets


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_module_of_a_kind_is_declared_by_its_feature(kind: Kind):
    declared = {
        module.__name__.removeprefix("svc.features.") for feature in FEATURES for module in feature.modules(kind)
    }
    assert modules_on_disk(kind) - declared - ONLY_NAMED_ELSEWHERE.keys() == set()


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_declared_module_has_what_its_kind_says(kind: Kind):
    for feature in FEATURES:
        for module in feature.modules(kind):
            if HAS[kind]:
                assert hasattr(module, HAS[kind]), module.__name__
            else:
                assert any(isinstance(value, Table) for value in vars(module).values()), module.__name__


def test_every_folder_that_declares_something_is_in_the_registry():
    declaring = {
        path.parent.name for path in FOLDER.glob("*/__init__.py") if hasattr(_package(path.parent.name), "FEATURE")
    }
    assert declaring == set(BY_NAME) - {"kernel", "identify"}
    assert len({feature.package for feature in FEATURES}) == len(FEATURES)


def _package(name: str) -> ModuleType:
    return import_module(f"svc.features.{name}")


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.package)
def test_a_command_is_where_its_feature_says(feature: Feature):
    for name, command in feature.commands.items():
        module = import_module(f"{feature.package}.{command.module}")
        assert isinstance(getattr(module, command.attribute or name), click.Command)
        assert command.summary.endswith(".")


def test_a_code_of_an_error_is_general_or_of_one_feature():
    declared = [code for feature in FEATURES for code in feature.refusals]
    assert len(declared) == len({*declared}) == len(CATALOG) - len(GENERAL)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.package)
def test_a_feature_declares_codes_that_its_routes_respond_with(feature: Feature):
    used = {code for module in feature.modules("routes") for route in module.ROUTES for code in route.errors}
    assert feature.refusals.keys() <= used


def test_rows_that_no_key_leads_to_are_erased_by_their_own_feature():
    """Decisions 7.6: and each function has tables, since it would be called for nothing else."""
    named = {table.personal.function for table in TABLES if isinstance(table.personal, ErasedBy)}
    assert named == set(erased())
    assert len(forgetting()) == len({id(of) for of in forgetting()}) >= 4


def test_what_retention_purges_is_a_table():
    assert set(of_features().purged_by) <= {table.name for table in TABLES}
