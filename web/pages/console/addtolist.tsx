/** Visitors, accounts, addresses and more of events that were chosen, into a list. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { many, words } from "./format.js";
import { standingOf } from "./standing.js";
import { useConsole, useLoad } from "./state.js";
import { Choice, Dialog, Field, Several, Show } from "./ui.js";
import type { EventRow, StoredList } from "./wire.js";

/** The values of these events that a list of this kind takes, each once. */
export function valuesFor(kind: string, rows: EventRow[]): string[] {
  const of: Record<string, (row: EventRow) => string | undefined> = {
    visitor: (row) => (row.identifiable === false ? undefined : row.visitor_id),
    account: (row) => row.account_id,
    address: (row) => row.ip_address,
    country: (row) => row.country_code,
    asn: (row) => row.asn,
    origin: (row) => row.origin,
    tag: (row) => row.tag,
  };
  return [...new Set(rows.map((row) => of[kind]?.(row)).filter((value) => value !== undefined))];
}

export function AddToList({ rows, onClose, onDone }: { rows: EventRow[]; onClose: () => void; onDone: () => void }) {
  const { api, environment, notify } = useConsole();
  const lists = useLoad(async () => (await api.manage<{ lists: StoredList[] }>("GET", "lists")).lists, []);
  const [name, setName] = useState("blocked_visitors");
  const list = lists.value?.find((one) => one.name === name);
  const values = list ? valuesFor(list.kind, rows) : [];
  return (
    <Dialog title="Add to a list" submit="Add" disabled={values.length === 0} onClose={onClose} onSubmit={async (form) => {
      const note = String(form.get("note")).trim();
      // First what may fail without a trace.
      const reason = (await standingOf(api, environment)).find((one) => one.name === name)?.reason;
      const { added, replaced } = await api.manage<{ added: number; replaced: number }>("POST", `lists/${list!.id}/entries`, { entries: values.map((value) => ({ value, note })) });
      notify(`${many(added, "entry", "entries")} added to ${name}${replaced > 0 ? `, ${replaced} were there` : ""}. ${reason ?? "It counts from the next request on."}`);
      onDone();
    }}>
      <Show of={lists}>{(found) => (
        <Field label="List"><Choice name="list" value={name} options={found.map((one): [string, string] => [one.name, `${one.name} (${one.kind})`])} onPick={setName} /></Field>
      )}</Show>
      {list && <p>{values.length === 0 ? `None of these events has a value for a list of kind ${list.kind}.` : <>{many(values.length, words(list.kind))}: <Several of={values} most={5} /></>}</p>}
      <Field label="Note"><input name="note" maxLength={500} autocomplete="off" /></Field>
    </Dialog>
  );
}
