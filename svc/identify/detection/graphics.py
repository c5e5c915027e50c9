"""What the graphics renderer tells: a machine without graphics hardware, or another system than the claimed one.

What may live here: everything that is read from the renderer and vendor strings of WebGL.
"""

from __future__ import annotations

from functools import lru_cache

from svc.identify.detection.claimed import Claimed, System
from svc.identify.detection.findings import Findings
from svc.identify.model import Claims

_TEXT_LIMIT = 512

_HYPERVISORS = ("vmware", "virtualbox", "parallels", "svga3d", "virgl", "qxl", "hyper-v", "virtio")
_SOFTWARE = ("swiftshader", "llvmpipe", "softpipe", "swrast", "basic render", "apple software renderer")

SOFTWARE_POINT_SIZE = 1023
"""The largest point of SwiftShader, which draws where Chromium finds no graphics hardware. Through Direct3D it is 1024,
through Metal 511; a tool that renames the renderer leaves its limits."""

_FOREIGN: dict[System, tuple[str, ...]] = {
    "windows": ("opengl engine", "metal renderer", "llvmpipe", "mesa dri", "mesa intel", "mali-", "powervr"),
    "apple": ("direct3d", "llvmpipe", "mesa ", "adreno", "mali-", "/pcie/sse2"),
    # Not "apple": Linux runs on Apple's chips.
    "unix": ("direct3d", "metal renderer", "opengl engine", "apple gpu"),
}
"""System -> renderers that it cannot have. Drivers that it could use with effort are not listed."""

_NOT_IN_A_PHONE = ("nvidia", "geforce", "radeon", "intel", "swiftshader")


def detect_graphics(claims: Claims, claimed: Claimed, findings: Findings) -> None:
    """Add `virtual_machine`, `gpu_mismatch` and contradictions of renderer and limits with the claimed system."""
    if not claims.gpu_renderer:
        return
    renderer = claims.gpu_renderer[:_TEXT_LIMIT].lower()
    if _names_any(renderer, _HYPERVISORS):
        findings.add("virtual_machine", "hypervisor_renderer", "definitive")
    elif is_software_renderer(renderer):
        findings.add("virtual_machine", "software_renderer", "hint")
    # The translator names the graphics of the machine around the emulator.
    if claimed.system is not None and "android emulator" not in renderer and _is_foreign(renderer, claimed):
        findings.contradict("gpu", "gpu_mismatch", "renderer_vs_system", about="graphics")
    if claimed.desktop and draws_in_software(claims) and not is_software_renderer(renderer):
        findings.contradict("limits", "browser_tampering", "limits_of_software_renderer", about="graphics")
        findings.driver_traces.append("limits_of_software_renderer")
    if _is_stealth_default(claims, claimed):
        findings.contradict("gpu", "gpu_mismatch", "stealth_default_renderer", about="graphics")
        findings.driver_traces.append("stealth_default_renderer")


def is_software_renderer(renderer: str | None) -> bool:
    """Return whether the renderer's name is that of one that draws on the CPU; `False` without a name."""
    if not renderer:
        return False
    text = renderer[:_TEXT_LIMIT].lower()
    return _names_any(text, _SOFTWARE)


def draws_in_software(claims: Claims) -> bool:
    """Return whether the processor draws, by the renderer's name or, where that was changed, by its limits."""
    if is_software_renderer(claims.gpu_renderer):
        return True
    renderer = (claims.gpu_renderer or "")[:_TEXT_LIMIT].lower()
    # Qualcomm's drivers may have this point size, too.
    return claims.point_size_limit == SOFTWARE_POINT_SIZE and not _names_any(renderer, ("adreno", "qualcomm"))


@lru_cache(maxsize=1024)
def _names_any(renderer: str, names: tuple[str, ...]) -> bool:
    # Few renderers cover most reports; the length limit bounds what clients make us keep.
    return any(name in renderer for name in names)


def _is_foreign(renderer: str, claimed: Claimed) -> bool:
    if claimed.ios:
        return _names_any(renderer, (*_FOREIGN["apple"], *_NOT_IN_A_PHONE))
    if claimed.system is None:
        return False
    # WebKit gives this name everywhere, for privacy.
    if claimed.ported_webkit and renderer == "apple gpu":
        return False
    # Windows on ARM draws with an Adreno too, but through Direct3D.
    if claimed.system == "windows" and "adreno" in renderer and "direct3d" not in renderer:
        return True
    return _names_any(renderer, _FOREIGN[claimed.system])


def _is_stealth_default(claims: Claims, claimed: Claimed) -> bool:
    """Return whether the renderer is the default of Puppeteer's stealth plugin: that of an old Mac before ANGLE.

    Chromium draws through ANGLE on Windows and macOS, and says so, since long before version 100.
    """
    return (
        claims.gpu_vendor == "Intel Inc."
        and claims.gpu_renderer == "Intel Iris OpenGL Engine"
        and claimed.engine == "chromium"
        and claimed.version >= 100
    )
