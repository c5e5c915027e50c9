"""What the service finds in captures of real browsers that were opened without automation.

python -m bench.browsers [--captures tests/captures/real-browsers.jsonl.gz]
"""

from __future__ import annotations

from bench.browsers.measure import detection_table, read_captures, visitors_table
from bench.usage import read_options


def main() -> None:
    captures = read_captures(read_options(__doc__).captures)
    for name, held_out in (("what rules were made on", False), ("what was held out", True)):
        those = [capture for capture in captures if capture.held_out is held_out]
        print(f"{detection_table(those, name).text()}\n\n{visitors_table(those, name).text()}\n", flush=True)


if __name__ == "__main__":
    main()
