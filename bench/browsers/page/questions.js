/** Questions that a page, an iframe and a worker can all answer. `scope` is the global object that is asked. */
export function answers(scope) {
  const { navigator } = scope;
  const found = {
    userAgent: navigator.userAgent,
    platform: navigator.platform,
    language: navigator.language,
    languages: navigator.languages,
    cpuCount: navigator.hardwareConcurrency,
    memory: navigator.deviceMemory,
    webdriver: navigator.webdriver,
    timezone: new scope.Intl.DateTimeFormat().resolvedOptions().timeZone,
  };
  try {
    const canvas = scope.document ? scope.document.createElement("canvas") : new scope.OffscreenCanvas(8, 8);
    const gl = canvas.getContext("webgl");
    const names = gl?.getExtension("WEBGL_debug_renderer_info");
    if (names) {
      found.vendor = gl.getParameter(names.UNMASKED_VENDOR_WEBGL);
      found.renderer = gl.getParameter(names.UNMASKED_RENDERER_WEBGL);
    }
  } catch {
    // This context cannot draw.
  }
  return found;
}
