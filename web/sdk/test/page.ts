/** As much of a page as sending needs, so that tests speak with a real server through the real `fetch` of node. */
import { vi } from "vitest";

class Page extends EventTarget {
  visibilityState: "visible" | "hidden" = "visible";

  show(state: "visible" | "hidden"): void {
    this.visibilityState = state;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

export interface World {
  page: Page;
  /** `navigator`, of which a test may change `onLine`. */
  browser: { onLine: boolean };
  /** What the browser does when the network is back. */
  goOnline(): void;
}

/** Puts a visible page of https://shop.example into the globals; vitest takes it out again after the test. */
export function openPage(): World {
  const page = new Page();
  const window = new EventTarget();
  const browser = { onLine: true };
  vi.stubGlobal("document", page);
  vi.stubGlobal("navigator", browser);
  vi.stubGlobal("location", new URL("https://shop.example/checkout"));
  vi.stubGlobal("origin", "https://shop.example");
  vi.stubGlobal("addEventListener", window.addEventListener.bind(window));
  const goOnline = (): void => {
    browser.onLine = true;
    window.dispatchEvent(new Event("online"));
  };
  return { page, browser, goOnline };
}
