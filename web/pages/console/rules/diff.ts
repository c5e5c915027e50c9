/** What differs between two rulesets, in words for people. */
import type { Rule } from "../wire.js";

export interface Difference {
  kind: "added" | "removed" | "changed" | "moved";
  name: string;
  /** Of a changed one: what was there, and what is. */
  fields: { field: string; before: string; after: string }[];
}

const FIELDS = ["name", "condition", "action", "mode", "note"] as const;

/** From `before` to `after`, in the order of `after`; removed ones last. Rules are compared by their ids. */
export function differences(before: Rule[], after: Rule[]): Difference[] {
  const known = new Map(before.map((rule) => [rule.id, rule]));
  const kept = after.filter((rule) => known.has(rule.id));
  const orderBefore = before.filter((rule) => kept.some((one) => one.id === rule.id)).map((rule) => rule.id);
  const found: Difference[] = [];
  for (const rule of after) {
    const old = known.get(rule.id);
    if (old === undefined) {
      found.push({ kind: "added", name: rule.name, fields: [] });
      continue;
    }
    const fields = FIELDS.filter((field) => old[field] !== rule[field]).map((field) => ({ field, before: old[field], after: rule[field] }));
    const hasMoved = orderBefore.indexOf(rule.id) !== kept.indexOf(rule);
    if (fields.length > 0) found.push({ kind: "changed", name: rule.name, fields });
    else if (hasMoved) found.push({ kind: "moved", name: rule.name, fields: [] });
  }
  const gone = before.filter((rule) => !after.some((one) => one.id === rule.id));
  return [...found, ...gone.map((rule): Difference => ({ kind: "removed", name: rule.name, fields: [] }))];
}

/** Where the service says that conditions are wrong: `rules[3].condition: line 1, column 5: ...`, by the index of the rule. */
export function conditionErrors(message: string): Map<number, { line: number; column: number; text: string }> {
  const found = new Map<number, { line: number; column: number; text: string }>();
  const parts = message.split(/;? ?(?=rules\[\d+\]\.condition: )/);
  for (const part of parts) {
    const [, at, line, column, text] = /^rules\[(\d+)\]\.condition: (?:line (\d+), column (\d+): )?(.*)$/s.exec(part.trim()) ?? [];
    if (at !== undefined) found.set(Number(at), { line: Number(line ?? 1), column: Number(column ?? 1), text: text ?? "" });
  }
  return found;
}

/** Where a line and column, both from 1, are in a text. */
export function offsetOf(text: string, line: number, column: number): number {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  return Math.min(before + column - 1, text.length);
}
