"""What the service finds in captures of real browsers that were opened without automation.

    python -m bench.browsers [--captures tests/captures/real-browsers.jsonl.gz] [--mistakes]

`--mistakes` lists every visit that is judged wrongly.
"""

from __future__ import annotations

from bench.browsers.measure import SHAPES, detection_table, list_mistakes, read_captures, visitors_table
from bench.usage import read_options


def main() -> None:
    given = read_options(__doc__)
    captures = read_captures(given.captures)
    for name, held_out in (("what rules were made on", False), ("what was held out", True)):
        those = [capture for capture in captures if capture.held_out is held_out]
        print(f"{detection_table(those, name).text()}\n\n{visitors_table(those, name).text()}\n", flush=True)
        if given.mistakes:
            for shape in SHAPES:
                print("\n".join(list_mistakes(those, shape)))


if __name__ == "__main__":
    main()
