"""The tests of what all features promise run on both engines, as those of the contract do."""

from tests.spec.conftest import (
    databases,
    directory,
    engine,
    live,
    pytest_collection_modifyitems,
    pytest_generate_tests,
    served,
)

__all__ = [
    "databases", "directory", "engine", "live", "pytest_collection_modifyitems", "pytest_generate_tests", "served",
]  # fmt: skip
