"""Tests of the service. What has to be so before any of its modules is imported."""

import importlib
import sys

# Where rich is installed, structlog draws a logged traceback with the variables of every frame, which takes half a
# second. `svc` does without it. In a benchmark that imports `svc` first it may draw.
if "structlog" not in sys.modules:
    sys.modules["rich"] = None  # pyright: ignore[reportArgumentType]
    importlib.import_module("structlog")
    del sys.modules["rich"]
