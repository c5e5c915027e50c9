"""The name of the graphics processor, freed from what a driver or browser update rewrites.

What may live here: the forms in which browsers wrap a renderer's name.

    ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 (0x00002504) Direct3D11 vs_5_0 ps_5_0, D3D11-31.0.15)   Windows
    ANGLE (Apple, ANGLE Metal Renderer: Apple M2, Unspecified Version)                             macOS
    ANGLE (Intel, Mesa Intel(R) UHD Graphics 620 (KBL GT2), OpenGL 4.6 (Core Profile) Mesa 23.0)   Linux
    ANGLE (Intel, Vulkan 1.2.182 (Intel(R) UHD Graphics 620 (0x00003EA0)), Intel open-source Mesa driver)
    NVIDIA GeForce RTX 3060/PCIe/SSE2    Adreno (TM) 650, or similar                               Firefox, phones
"""

from __future__ import annotations

import re
from functools import lru_cache

LONGEST_RENDERER = 256

_NOISE = re.compile(
    r"""
      \bdirect3d\S*\s+vs_\S+\s+ps_[\d_]+            # the shader models of Direct3D
    | \b(?:direct3d|d3d)[\w.\-]*                    # the API, with or without a driver version
    | \bopengl(?:\ es)?\b(?:[\ \-]?[\d.]+)?(?:\ engine)?
    | \b(?:vulkan|metal)\ [\d.]+
    | \bangle\ metal\ renderer:
    | \bunspecified\ version | \bversion\ [\d.]+
    | /pcie | /sse2
    | ,?\ or\ similar                               # Firefox rounds the name to that of a family
    | \(core\ profile\) | \bcompatibility\ profile\b
    | \bmesa\b(?:\ [\d.]+\S*)? | \bllvm\ [\d.]+ | \bdrm\ [\d.]+
    | \b\w+\.dll\b
    | \((?:r|tm|c)\) | (?<=radeon)t\b | [\u00ae\u2122]
    """,
    re.VERBOSE,
)
_MAKERS = re.compile(r"\b(?:corporation|inc\.?|technologies|open[- ]source|driver)(?=\s|$|[,)])")
_WRAPPED = re.compile(r"angle \((.*)\)\s*(?:, or similar)?", re.DOTALL)
_PUNCTUATION = re.compile(r"[(),;:/\s]+")


@lru_cache(maxsize=4096)
def canonical_gpu(vendor: str, renderer: str) -> str:
    """The processor's name in lower case: no API, no driver, no ANGLE. "" when nothing is left.

    The device number stays (`0x00002504`): it belongs to the silicon, and Chromium on Windows reports it throughout.
    """
    name = renderer[:LONGEST_RENDERER].lower()
    wrapped = _WRAPPED.fullmatch(name)
    if wrapped is not None:
        name = _of_wrapped(wrapped.group(1))
    name = _plain(name)
    return name or _plain(vendor[:LONGEST_RENDERER].lower())


def _of_wrapped(inner: str) -> str:
    """`maker, name, driver` inside ANGLE's parentheses: the name; older releases wrote the name alone.

    The split is at commas outside parentheses, since names carry their own.
    """
    parts: list[str] = []
    depth, start = 0, 0
    for position, character in enumerate(inner):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "," and depth <= 0:
            parts.append(inner[start:position])
            start = position + 1
    parts.append(inner[start:])
    return parts[1] if len(parts) >= 2 else parts[0]


def _plain(name: str) -> str:
    name = _NOISE.sub(" ", name)
    name = _MAKERS.sub(" ", name)
    return " ".join(_PUNCTUATION.sub(" ", name).split())
