"""What a user agent and its client hints say: browser, system, kind of device, and whether it is a program.

What may live here: reading what a visitor calls itself. Nothing here decides whether that is true.
`agent` reads the headers and joins the pieces; `systems` and `crawlers` hold the names.
"""

from svc.identify.useragent.agent import load_patterns, read_agent, read_hints

__all__ = ["load_patterns", "read_agent", "read_hints"]
