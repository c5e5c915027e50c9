"""docs/internals/glossary.md decides: no text for people has a term that one of the glossary replaced."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

import click
import pytest

from svc.cli import program
from svc.features.routes import API
from svc.http.openapi import document as openapi
from tools.docs import DOCS, ROOT

OTHER_MEANINGS = {
    "found": "participle of `find`",
    "followed": "participle of `follow`",
    "forget": "what a visitor asks for on /try",
    "front": "`in front of`",
    "late": "after its time, as anybody says it",
    "logged": "written to the log",
    "look": "verb of people",
    "made": "participle of `make`",
    "mark": "of quotation, of punctuation",
    "over": "preposition",
    "fails": "verb",
    "recognize": "word of the interface for an earlier visitor (`visitor_confidence`), as pages say it to people",
    "place": "a location; `in place of`",
    "reach": "verb: what can be connected to, what a count attains",
    "refused": "word of the interface for a request that is rejected with an error code",
    "sending": "participle of `send`",
    "sound": "audio, a source of a fingerprint",
    "trace": "verb; a trace of calls",
    "waiting": "participle of `wait`",
    "window": "of a browser; of time, as in the code `invalid_window`",
}
"""Former terms that are everyday words too, and may stand in that meaning."""

_CODE = re.compile(r"^ *```.*?^ *```$|`[^`]*`|\]\([^)]*\)|https?://\S+", re.MULTILINE | re.DOTALL)
_WEB_TEXT = re.compile(r">([^<>{}=;]*[a-z] [^<>{}=;]*)<|\"([^\"\n]* [^\"\n]*)\"|`([^`]* [^`]*)`")
_WEB_COMMENT = re.compile(r"/\*.*?\*/|^\s*//.*?$", re.MULTILINE | re.DOTALL)


@cache
def former() -> dict[str, str]:
    """Former term -> the term in its place."""
    return tomllib.loads((ROOT / "tests" / "former_terms.toml").read_text())


def terms_in(text: str) -> list[str]:
    """The former terms in a text and the words around each, its code left out."""
    plain = _CODE.sub(" ", text)
    return [
        f"{term} (now: {former()[term]}): ...{plain[max(0, found.start() - 40) : found.end() + 40]!r}"
        for term, pattern in _patterns().items()
        for found in pattern.finditer(plain)
    ]


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """As the term stands there, in the plural, and as the other forms of a verb."""
    endings = r"(?:s|es|d|ed|ing)?"
    return {
        term: re.compile(rf"(?<![\w-]){re.escape(term)}{endings}(?![\w-])", re.IGNORECASE)
        for term in former()
        if term not in OTHER_MEANINGS
    }


def pages() -> dict[str, str]:
    """Every page, for users and for developers, and every decision, but for the glossary itself and for the page of
    figures that `bench.linkage` writes.
    """
    written = (path for path in DOCS.glob("**/*.md") if path.name not in ("glossary.md", "accuracy.md"))
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in [ROOT / "README.md", *written]}


def helps() -> dict[str, str]:
    """What `--help` shows, by command."""

    def below(path: str, command: click.Command) -> Iterator[tuple[str, str]]:
        options = (option.help or "" for option in command.params if isinstance(option, click.Option))
        yield path, "\n".join([command.help or "", command.epilog or "", *options])
        if isinstance(command, click.Group):
            for name in command.commands:
                yield from below(f"{path} {name}", command.commands[name])

    return dict(below("svc", program))


def messages() -> dict[str, str]:
    """Every literal with words: messages, errors, what metrics mean. Docstrings are for developers."""
    found: dict[str, str] = {}
    folders = ("svc", "svc_replay", "clients/python/svc_client")
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        nodes = [*ast.walk(ast.parse(path.read_text()))]
        statements = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            text = node.value if isinstance(node, ast.Constant) and id(node) not in statements else None
            if isinstance(text, str) and " " in text.strip():
                found[f"{path.relative_to(ROOT)}:{node.lineno}: {text}"] = text
    for path in sorted((ROOT / "svc").rglob("*.toml")):
        found |= {f"{path.name}: {text}": text for text in _strings(tomllib.loads(path.read_text()))}
    return found


def descriptions() -> dict[str, str]:
    """Of the OpenAPI documents: every title, summary and description."""

    def below(part: Any) -> Iterator[str]:
        if isinstance(part, dict):
            for name, value in part.items():
                is_text = name in ("title", "summary", "description") and isinstance(value, str)
                yield from [value] if is_text else below(value)
        elif isinstance(part, list):
            for value in part:
                yield from below(value)

    documents = [openapi.emit(API, published) for published in (openapi.OF_API, openapi.OF_CONSOLE)]
    return {text: text for text in below(documents)}


def web_texts() -> dict[str, str]:
    """What the pages and the reference show."""
    sources = [path for kind in ("*.tsx", "*.ts", "*.html") for path in (ROOT / "web" / "pages").rglob(kind)]
    own = (ROOT / "svc" / "http" / "page").glob("*.[hj]*[ls]")
    found: dict[str, str] = {}
    for path in (*sources, *own):
        if "test" not in path.parts:
            for groups in _WEB_TEXT.findall(_WEB_COMMENT.sub("", path.read_text())):
                text = "".join(groups)
                found[f"{path.relative_to(ROOT)}: {text}"] = text
    return found


def _strings(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for value in part.values():
            yield from _strings(value)
    elif isinstance(part, list):
        for value in part:
            yield from _strings(value)


SOURCES = tuple(map(cache, (pages, helps, messages, descriptions, web_texts)))
"""Each gives name -> text."""


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_no_text_has_a_former_term(source: Any):
    texts = source()
    assert len(texts) > 20, "texts are looked for in vain"
    found = {name: terms for name, text in texts.items() if (terms := terms_in(text))}
    assert found == {}


def test_a_former_term_is_found_in_all_its_forms_but_not_in_code_or_other_words():
    assert len(former()) > 40
    for text in ("It answers.", "A judgment", "a twin", "damage", "following begins anew", "Circles of objects"):
        assert len(terms_in(text)) == 1, text
    assert terms_in("`answer`, [a response](answer.md), answerable, `IdentifyAnswer`\n```\nanswer\n```") == []


@pytest.mark.slow
def test_every_exception_is_a_former_term_that_is_still_in_use():
    words = " ".join(text for source in SOURCES for text in source().values()).lower()
    for term, reason in OTHER_MEANINGS.items():
        assert reason
        assert term in former(), f"{term} is no former term"
        assert re.search(rf"\b{term.removesuffix('e')}", words), f"{term} is used nowhere: take it out"
