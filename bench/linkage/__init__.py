"""How well, and how fast, a returning device is recognised: `python -m bench.linkage.accuracy`."""
