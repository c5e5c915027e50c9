/** Questions that a page, an iframe and a worker can all answer: of an honest browser, the same. */

/** The answers of one context. */
export interface Answers {
  userAgent?: string;
  platform?: string;
  language?: string;
  languages?: readonly string[];
  cores?: number;
  memory?: number;
  webdriver?: boolean;
  timeZone?: string;
  gpuVendor?: string;
  gpuRenderer?: string;
}

/** What is asked: the global object of a page, an iframe or a worker. */
export interface Scope {
  navigator: Navigator & { deviceMemory?: number };
  Intl: typeof Intl;
  document?: Document;
  OffscreenCanvas?: typeof OffscreenCanvas;
}

/** Asks one context, except for its graphics. A question that it refuses is left out. */
export function ask(scope: Scope): Answers {
  const { navigator } = scope;
  const found: Answers = {
    userAgent: navigator.userAgent,
    platform: navigator.platform,
    language: navigator.language,
    languages: navigator.languages,
    cores: navigator.hardwareConcurrency,
    webdriver: navigator.webdriver,
  };
  if (navigator.deviceMemory !== undefined) found.memory = navigator.deviceMemory;
  try {
    found.timeZone = new scope.Intl.DateTimeFormat().resolvedOptions().timeZone;
  } catch {
    // Not said.
  }
  return found;
}

/** Asks one context for its graphics, which takes longest; nothing where it can't draw. */
export function askGraphics(scope: Scope): Answers {
  const found: Answers = {};
  try {
    const canvas = scope.document
      ? scope.document.createElement("canvas")
      : scope.OffscreenCanvas && new scope.OffscreenCanvas(1, 1);
    const gl = canvas?.getContext("webgl") as WebGLRenderingContext | null | undefined;
    const names = gl?.getExtension("WEBGL_debug_renderer_info");
    if (gl && names) {
      found.gpuVendor = String(gl.getParameter(names.UNMASKED_VENDOR_WEBGL));
      found.gpuRenderer = String(gl.getParameter(names.UNMASKED_RENDERER_WEBGL));
    }
    gl?.getExtension("WEBGL_lose_context")?.loseContext(); // pages may have 16 contexts
  } catch {
    // Not said.
  }
  return found;
}
