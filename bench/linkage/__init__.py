"""How well, and how fast, a returning device is recognized: `python -m bench.linkage.accuracy`."""
