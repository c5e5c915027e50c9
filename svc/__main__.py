"""`python -m svc`: the program `svc`."""

from __future__ import annotations

from svc.cli import main

main()
