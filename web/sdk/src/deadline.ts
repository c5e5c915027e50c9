/** Time limits. */

/** Resolves after so many milliseconds. */
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const isHidden = (): boolean => typeof document !== "undefined" && document.visibilityState === "hidden";

/** A time limit that stands still while the page is hidden: browsers slow down or stop what hidden pages do. */
export class Deadline {
  /** Resolves when the time is over. */
  readonly over: Promise<void>;
  /** Milliseconds that did not count. */
  hiddenMs = 0;
  private left: number;
  private since = performance.now();
  private hidden = isHidden();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private resolve: () => void = () => undefined;

  constructor(readonly ms: number) {
    this.left = ms;
    this.over = new Promise((resolve) => (this.resolve = resolve));
    document.addEventListener("visibilitychange", this.turn);
    this.arm();
  }

  /** Milliseconds left; 0 when the time is over. */
  remainingMs(): number {
    return Math.max(0, this.left - (this.hidden ? 0 : performance.now() - this.since));
  }

  /** Frees what the limit holds. */
  stop(): void {
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.turn);
  }

  private readonly turn = (): void => {
    const now = performance.now();
    if (this.hidden) this.hiddenMs += now - this.since;
    this.left = this.remainingMs();
    this.since = now;
    this.hidden = isHidden();
    this.arm();
  };

  /** Timers may fire a moment before the clock says so: from here on nothing is left, whatever it says. */
  private readonly end = (): void => {
    this.left = 0;
    this.resolve();
  };

  private arm(): void {
    clearTimeout(this.timer);
    if (!this.hidden) this.timer = setTimeout(this.end, this.left);
  }
}
