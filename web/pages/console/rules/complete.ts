/** Completion of conditions: what may stand where somebody writes. */
import type { Language } from "../wire.js";

export interface Completion {
  /** What is shown; `text` takes the place of what was typed. */
  label: string;
  text: string;
  detail: string;
}

const MOST = 12;
const WINDOWS = ["1h", "24h", "30d"];

/** The part of a name before the caret that is being written; and whether it is within quotes after `in_list(` or an index. */
function context(before: string): { typed: string; within: "name" | "list" | "window" | "variable" } {
  const list = /in_list\(\s*["']([\w]*)$/.exec(before);
  if (list) return { typed: list[1] ?? "", within: "list" };
  const asked = /present\(\s*["']([\w.]*)$/.exec(before);
  if (asked) return { typed: asked[1] ?? "", within: "variable" };
  const window = /velocity\.\w+\.\w+\[\s*["'](\w*)$/.exec(before);
  if (window) return { typed: window[1] ?? "", within: "window" };
  return { typed: /[A-Za-z_][\w.]*$/.exec(before)?.[0] ?? "", within: "name" };
}

/** Whether the caret is in a text between quotes that is no argument which we know. */
function isInText(before: string): boolean {
  const line = before.slice(before.lastIndexOf("\n") + 1).replace(/\\./g, "");
  return ((line.match(/"/g)?.length ?? 0) % 2 === 1) || ((line.match(/'/g)?.length ?? 0) % 2 === 1);
}

/** What fits at the end of `before`, best first, and how many characters of it each takes the place of. */
export function completions(before: string, language: Language, signals: string[]): { replaces: number; found: Completion[] } {
  const { typed, within } = context(before);
  const fits = (label: string) => label.toLowerCase().startsWith(typed.toLowerCase()) && label !== typed;
  const of = (labels: string[], detail: (label: string) => string): Completion[] => labels.filter(fits).map((label) => ({ label, text: label, detail: detail(label) }));
  const kinds = new Map(language.lists.map(({ name, kind }) => [name, kind]));
  const types = new Map(language.variables.map(({ name, type }) => [name, type]));
  const found =
    within === "list" ? of([...kinds.keys()], (name) => `list of kind ${kinds.get(name)}`)
    : within === "window" ? of(WINDOWS, () => "window")
    : within === "variable" ? of([...types.keys()], (name) => types.get(name) ?? "")
    : isInText(before) ? signalsIn(before, signals)
    : typed === "" ? []
    : [...of([...types.keys()], (name) => types.get(name) ?? ""), ...language.functions.filter((one) => fits(one)).map((label) => ({ label, text: label, detail: "function" }))];
  return { replaces: isInText(before) && within === "name" ? (/[\w]*$/.exec(before)?.[0].length ?? 0) : typed.length, found: found.slice(0, MOST) };
}

/** Names of signals, within a text that is being written. */
function signalsIn(before: string, signals: string[]): Completion[] {
  const typed = /[\w]*$/.exec(before)?.[0] ?? "";
  if (typed.length < 2) return [];
  return signals.filter((name) => name.startsWith(typed) && name !== typed).map((name) => ({ label: name, text: name, detail: "signal" }));
}
