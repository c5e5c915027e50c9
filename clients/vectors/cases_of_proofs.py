"""Cases of `proof.json`: the text that a browser signs, written out by hand, without the code of the service."""

from __future__ import annotations

from typing import Any

ORIGIN = "https://shop.example"
SIGNALS = '{"client_token":"0123456789abcdef0123456789abcdef","fonts":["Zoë","😀"]}'


def proof_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []

    def case(name: str, about: str, account_id: str | None, action: str | None, tag: str | None) -> None:
        given = {"origin": ORIGIN, "account_id": account_id, "action": action, "tag": tag, "signals": SIGNALS}
        expect = {"text": f"svc-proof 2\n{ORIGIN}\n{about}\n{SIGNALS}"}
        cases.append(
            {"name": name, "kind": "proof", "given": given, "expect": expect, "only": ["python", "typescript"]}
        )

    case("about nothing", "[null,null,null]", None, None, None)
    case("about an account", '["a-1",null,null]', "a-1", None, None)
    case("about everything", '["a-1","log_in","cart-17"]', "a-1", "log_in", "cart-17")
    case("an empty tag is no missing one", '[null,null,""]', None, None, "")
    case("text beyond ASCII stays as it is", '["Zoë 😀","pay","\u2028\x7f"]', "Zoë 😀", "pay", "\u2028\x7f")
    case(
        "quotes, backslashes and control characters are escaped",
        r'["a\"b\\c/d",null,"\t\n\r\b\f\u0000\u001f"]',
        'a"b\\c/d',
        None,
        "\t\n\r\b\f\x00\x1f",
    )
    return cases
