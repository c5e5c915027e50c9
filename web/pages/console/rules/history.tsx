/** Revisions of a ruleset: who saved each, what it changed, and the way back. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { literal } from "../format.js";
import { useConsole, usePages } from "../state.js";
import { Button, Card, Confirm, More, Show, Time } from "../ui.js";
import type { Revision, Ruleset } from "../wire.js";
import { type Difference, differences } from "./diff.js";

export function History({ audience, saved, onSaved }: { audience: string; saved: Ruleset; onSaved: (next: Ruleset) => void }) {
  const { api, notify } = useConsole();
  const [restoring, setRestoring] = useState<Revision>();
  const { loaded, more, busy, error } = usePages(
    async (cursor, signal) => {
      const page = await api.get<{ revisions: Revision[]; next_before?: number }>("rules/history", { environment: audience, before: cursor, limit: 10 }, signal);
      return { revisions: page.revisions, ...(page.next_before !== undefined && { next_cursor: String(page.next_before) }) };
    },
    (page) => page.revisions,
    [audience, saved.revision],
  );
  const restore = async () => {
    const known = new Set(saved.rules.map(({ id }) => id));
    // A rule that is gone is created again: only those in force may be named by their ids.
    const rules = restoring!.rules.map(({ id, ...rest }) => (known.has(id) ? { id, ...rest } : rest));
    onSaved(await api.manage<Ruleset>("PUT", "rules", { revision: saved.revision, rules }, { environment: audience }));
    setRestoring(undefined);
    notify(`The rules are those of revision ${restoring!.revision} again.`);
  };
  return (
    <Card title="History">
      <Show of={loaded}>{({ rows, cursor }) => (
        <>
          <ol class="timeline">{rows.map((revision, at) => {
            const before = rows[at + 1];
            return (
              <li key={revision.revision}>
                <p><strong>Revision {revision.revision}</strong> {revision.saved_at ? <>saved <Time at={revision.saved_at} /> by {revision.saved_by?.name ?? revision.saved_by?.id ?? "a former key"}</> : "with which every organization starts"} {at === 0 ? <span class="badge low">in force</span> : <Button admin kind="small" name={`Restore revision ${revision.revision}`} onClick={() => setRestoring(revision)}>Restore …</Button>}</p>
                {before && <Changes of={differences(before.rules, revision.rules)} />}
              </li>
            );
          })}</ol>
          <More show={cursor !== undefined} busy={busy} error={error} onMore={more} />
        </>
      )}</Show>
      {restoring && (
        <Confirm title={`Restore revision ${restoring.revision}?`} submit="Restore" onClose={() => setRestoring(undefined)} onConfirm={restore}>
          <p>It is saved as a new revision, in force from the next request on. This changes:</p>
          <Changes of={differences(saved.rules, restoring.rules)} />
        </Confirm>
      )}
    </Card>
  );
}

export function Changes({ of }: { of: Difference[] }) {
  if (of.length === 0) return <p class="quiet">Nothing changed.</p>;
  return (
    <ul class="changes">
      {of.map((one) => (
        <li key={`${one.kind} ${one.name}`}>
          <strong>{one.name}</strong> {one.kind}
          {one.fields.map(({ field, before, after }) => (
            <p key={field} class="diff"><span class="quiet">{field}:</span> <del>{literal(before || "empty")}</del> <ins>{literal(after || "empty")}</ins></p>
          ))}
        </li>
      ))}
    </ul>
  );
}
