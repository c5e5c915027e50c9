/** Answers that one page's life does not change: a page that identifies often asks each question once. */

export class Kept {
  private about = "";
  private readonly answers = new Map<string, Promise<unknown>>();

  /**
   * To be called before each report with what the browser says of itself at a glance: where that is another than before,
   * as when it was zoomed or given another language, everything is asked again.
   */
  begin(about: string): void {
    if (about !== this.about) this.answers.clear();
    this.about = about;
  }

  /** The answer of the first call by this name; one that failed is asked again. */
  once<T>(name: string, ask: () => T | Promise<T>): Promise<T> {
    const known = this.answers.get(name) as Promise<T> | undefined;
    if (known) return known;
    const answer = Promise.resolve(ask());
    this.answers.set(name, answer);
    answer.catch(() => this.answers.delete(name));
    return answer;
  }
}
