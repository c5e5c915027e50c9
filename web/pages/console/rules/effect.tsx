/** What rules would have done to the newest events. */
/** @jsxImportSource preact */
import { useLayoutEffect, useRef } from "preact/hooks";
import { apart, count } from "../format.js";
import { useConsole, useLink, useLoad } from "../state.js";
import { AccountLink, Name, Of, Table, Time, Verdict } from "../ui.js";
import type { Example, RulesPreview } from "../wire.js";

const ACTIONS = ["allow", "review", "challenge", "block", "none"];

/** What the service says of these rules, with their names for their places. */
export const Warnings = ({ of: { warnings, rules } }: { of: { warnings?: string[]; rules: { name: string }[] } }) => (
  <>{warnings?.map((one) => <p class="note" key={one}>{one.replace(/rules\[(\d*)\]/g, (_, at: string) => (at ? `“${apart(rules[Number(at)]?.name ?? "")}”` : "The ruleset"))}.</p>)}</>
);

export function Effect({ preview, audience }: { preview: RulesPreview; audience: string }) {
  const { api } = useConsole();
  const link = useLink();
  const { value: known } = useLoad(async (signal) => {
    const ids = preview.rules.flatMap(({ examples }) => examples);
    const { rows } = await api.call<{ rows: Example[] }>("POST", "rules/examples", { body: { request_ids: ids }, signal });
    return new Map(rows.map((row) => [row.request_id, row]));
  }, [preview]);
  const shown = (id: string, at: number, of: string) => {
    const row = known?.get(id);
    return (
      <li key={id}>
        <a href={link("events", id)}>{row ? <Time at={row.occurred_at} /> : `Example ${at + 1} of ${of}`}</a>
        {row && <> <Verdict row={row} /> {row.action && <Name of={row.action} />} {row.account_id && (audience === "live" ? <Of environment="production"><AccountLink id={row.account_id} /></Of> : <span class="tag">{row.account_id}</span>)}</>}
      </li>
    );
  };
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => heading.current?.focus(), [preview]);
  const environments = audience === "live" ? "production" : "staging and development";
  return (
    <section class="card preview">
      <h2 tabIndex={-1} ref={heading}>Preview</h2>
      <Warnings of={preview} />
      {preview.events === 0
        ? <p>There is no event in {environments} to try the rules on.</p>
        : <>
            <p>Of the newest <strong>{count(preview.events)}</strong> events in {environments}, with the lists as they are now:</p>
            <Table name="Decisions" keyOf={(action) => action} rows={ACTIONS.filter((one) => (preview.before[one] ?? 0) + (preview.after[one] ?? 0) > 0)} columns={[
              { head: "Decision", cell: (action) => action },
              { head: "As decided", cell: (action) => count(preview.before[action] ?? 0), number: true },
              { head: "With these rules", cell: (action) => count(preview.after[action] ?? 0), number: true },
            ]} />
            <Table name="Rules" keyOf={(rule) => rule.name} rows={preview.rules} columns={[
              { head: "Rule", cell: (rule) => rule.name },
              { head: "Matches", cell: (rule) => count(rule.matches), number: true },
              { head: "Errors", cell: (rule) => rule.error && `${count(rule.errors)}: ${rule.error}` },
              { head: "Examples", cell: (rule) => rule.examples.length > 0 && <ul class="examples">{rule.examples.map((id, at) => shown(id, at, rule.name))}</ul> },
            ]} />
          </>}
    </section>
  );
}
