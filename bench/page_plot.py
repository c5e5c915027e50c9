"""The figures of `bench.pages` as a picture: kB written for an identification, and throughput, by the size of a store.

What may live here: the drawing, from values alone; the same values give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 380, 300
"""Of a panel."""
_PANEL, _LEFT, _TOP, _BAR = 300, 60, 50, 48
_TALL = 180
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#57606a}.value{fill:#24292f;font-weight:600}.title{font-size:14px}"
    ".bar{fill:#3b6ea8}.axis{stroke:#8c959f;stroke-width:1}.bound{stroke:#b35900;stroke-dasharray:4 3}"
)


class Bar(NamedTuple):
    """One bar of a panel."""

    label: str
    value: float


class Panel(NamedTuple):
    """A group of bars with a title, and a line at `bound` where there is one."""

    title: str
    bars: Sequence[Bar]
    bound: float | None = None
    bound_label: str = ""


def draw(panels: Sequence[Panel], description: str) -> str:
    """An SVG document: the panels side by side."""
    width = WIDTH * len(panels)
    drawn = "\n".join(line for place, panel in enumerate(panels) for line in _panel(panel, place * WIDTH))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" role="img"'
        f' aria-label="{description}">\n'
        f"<style>{_STYLE}</style>\n"
        f'<rect width="{width}" height="{HEIGHT}" fill="#ffffff"/>\n{drawn}\n</svg>\n'
    )


def _panel(panel: Panel, left: int) -> Iterator[str]:
    highest = max([bar.value for bar in panel.bars] + [panel.bound or 0.0]) or 1.0
    floor = _TOP + _TALL
    yield f'<text class="title" x="{left + _LEFT}" y="28">{panel.title}</text>'
    for place, bar in enumerate(panel.bars):
        tall = round(_TALL * bar.value / highest, 1)
        x = left + _LEFT + 20 + place * (_PANEL // max(1, len(panel.bars)))
        yield f'<rect class="bar" x="{x}" y="{floor - tall:.1f}" width="{_BAR}" height="{tall:.1f}"/>'
        center = f'x="{x + _BAR // 2}" text-anchor="middle"'
        yield f'<text class="value" {center} y="{floor - tall - 6:.1f}">{bar.value:,.0f}</text>'
        yield f'<text {center} y="{floor + 18}">{bar.label}</text>'
    yield f'<line class="axis" x1="{left + _LEFT}" x2="{left + _LEFT + _PANEL}" y1="{floor}" y2="{floor}"/>'
    if panel.bound is not None:
        y = round(floor - _TALL * panel.bound / highest, 1)
        yield f'<line class="bound" x1="{left + _LEFT}" x2="{left + _LEFT + _PANEL}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{left + _LEFT + _PANEL}" y="{y - 4}" text-anchor="end">{panel.bound_label}</text>'
