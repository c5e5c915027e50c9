"""Options of a program, read from the usage in its docstring, which so is the only place that names them.

    python -m bench.example run|check DIRECTORY [--seed 1] [--sizes 1 10] [--kind small|large] [--quick] [--json FILE]

Words in capitals are arguments, and one in small letters is one of several words. Beside an option stands its default;
what it takes, in capitals, where it has none; its choices, the default first; several, or dots, where it takes several;
nothing where it takes nothing. Each line is a way to call the program; what follows two blanks is said of that way.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path

KINDS: dict[str, Callable[[str], object]] = {"N": int, "S": float, "MS": float, "MIB": int}
"""What an option without a default takes -> how it is read; names of files and folders as paths, all else as text."""
PATHS = ("FILE", "DIR", "DIRECTORY")


def read_options(doc: str | None, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What a program with this docstring was called with."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    places: dict[int, dict[str, None]] = {}
    known: set[str] = set()
    for line in re.findall(r"^ *python -m \S+ *(.*(?:\n +\[.*)*)", doc or "", re.MULTILINE):
        way = re.split(r"(?<=\S) {2,}(?!\[)", re.sub(r"\n +", " ", line))[0]
        for name, default in re.findall(r"\[(--[\w-]+) ?([^\]]*)\]", way):
            if name not in known:
                known.add(name)
                _add(parser, name, default.split())
        for place, word in enumerate(re.sub(r"\[[^\]]*\]|--[\w-]+(?: [^\s\[]+)?", " ", way).split()):
            places.setdefault(place, {}).update(dict.fromkeys(word.split("|")))
    for words in places.values():
        first = next(iter(words))
        if first.isupper() or first.endswith("..."):
            name = first.removesuffix("...")
            nargs = "+" if first.endswith("...") else None
            parser.add_argument(name.lower(), metavar=name, nargs=nargs, type=_reader(name))
        else:
            parser.add_argument("what", choices=[*words])
    return parser.parse_args(arguments)


def _add(parser: argparse.ArgumentParser, name: str, given: Sequence[str]) -> None:
    if not given:
        parser.add_argument(name, action="store_true")
    elif "|" in given[0]:
        choices = given[0].split("|")
        parser.add_argument(name, choices=choices, default=choices[0])
    else:
        words = [word.removesuffix("...") for word in given]
        read = _reader(words[0])
        defaults = [read(word) for word in words if not word.isupper()]
        if len(words) > 1 or given[0].endswith("..."):
            parser.add_argument(name, nargs="+", metavar=words[0], type=read, default=defaults)
        else:
            parser.add_argument(name, metavar=words[0], type=read, default=next(iter(defaults), None))


def _reader(word: str) -> Callable[[str], object]:
    if word in PATHS or "/" in word:
        return Path
    if word in KINDS:
        return KINDS[word]
    for pattern, read in ((r"-?\d+", int), (r"-?\d*\.\d+", float)):
        if re.fullmatch(pattern, word):
            return read
    return str
