"""How well detection tells programs from people: `python -m bench.detection`."""
