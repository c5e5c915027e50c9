"""How well user agents and addresses are read: `python -m bench.detection`."""
