/** Visitors and accounts that were chosen together: labeled, listed or blocked, with one confirmation and one undo. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import type { Api } from "./api.js";
import { period } from "./filters.js";
import { many } from "./format.js";
import { WHY } from "./judging/queue.js";
import { standingOf } from "./standing.js";
import { useAction, useConsole, useLoad } from "./state.js";
import { Button, Choice, Dialog, Field, Problem } from "./ui.js";
import { addEntries, type Back, inSteps, removeEntries } from "./undo.js";
import type { Entry, EventRow, Links, Page, StoredList } from "./wire.js";

/** How many events one request reads. */
const AT_ONCE = 200;
/** Events that are labeled together. */
const MAX_LABELED = 500;

interface Chosen {
  visitors: string[];
  accounts: string[];
}

export const chosenOf = (links: Links["links"]): Chosen => ({
  visitors: [...new Set(links.map(({ visitor_id }) => visitor_id))],
  accounts: [...new Set(links.map(({ account_id }) => account_id))],
});

const said = ({ visitors, accounts }: Chosen): string => `${many(visitors.length, "visitor")} and ${many(accounts.length, "account")}`;

/** Those of one list, or of the lists of blocked and trusted ones. */
const entriesOf = async (api: Api, chosen: Chosen, list_id?: string): Promise<{ list_id: string; list: string; entry: Entry }[]> =>
  (await api.call<{ entries: { list_id: string; list: string; entry: Entry }[] }>("POST", "standing", { body: { ...chosen, list_id } })).entries;

/** Puts all of them on the lists of blocked ones and takes them off those of trusted ones. What was blocked before stays as it was. */
export async function blockAll(api: Api, environment: string, chosen: Chosen, note: string): Promise<{ back: Back; reason: string | undefined }> {
  const [lists, before] = [await standingOf(api, environment), await entriesOf(api, chosen)];
  const back = await inSteps(async (done) => {
    for (const [kind, values] of [["visitors", chosen.visitors], ["accounts", chosen.accounts]] as const) {
      const there = new Set(before.filter(({ list }) => list === `blocked_${kind}`).map(({ entry }) => entry.value));
      const fresh = values.filter((value) => !there.has(value)), list = lists.find(({ name }) => name === `blocked_${kind}`)!.id;
      if (fresh.length > 0) {
        await addEntries(api, list, fresh.map((value) => ({ value, note, expires_at: null })));
        done.push(() => removeEntries(api, list, fresh));
      }
      const trusted = before.filter((one) => one.list === `trusted_${kind}`);
      if (trusted.length > 0) {
        await removeEntries(api, trusted[0]!.list_id, trusted.map(({ entry }) => entry.value));
        done.push(() => addEntries(api, trusted[0]!.list_id, trusted.map(({ entry }) => entry)));
      }
    }
  });
  return { back, reason: lists.find(({ name }) => name === "blocked_visitors")?.reason };
}

/** Puts on a list those that it takes and does not have. What was there before stays as it was. */
export async function listAll(api: Api, list: StoredList, chosen: Chosen, note: string): Promise<{ added: number; there: number; back: Back }> {
  const there = new Set((await entriesOf(api, chosen, list.id)).map(({ entry }) => entry.value));
  const fresh = (list.kind === "visitor" ? chosen.visitors : chosen.accounts).filter((value) => !there.has(value));
  if (fresh.length > 0) await addEntries(api, list.id, fresh.map((value) => ({ value, note, expires_at: null })));
  const back = async () => {
    if (fresh.length > 0) await removeEntries(api, list.id, fresh);
  };
  return { added: fresh.length, there: there.size, back };
}

/** The events by which the chosen ones are linked, of 30 days, newest first. */
async function eventsOf(api: Api, environment: string, links: Links["links"]): Promise<EventRow[]> {
  const pairs = new Set(links.map(({ visitor_id, account_id }) => `${visitor_id} ${account_id}`));
  const found: EventRow[] = [];
  for (const account_id of chosenOf(links).accounts) {
    let cursor: string | undefined;
    do {
      const page: Page & { rows: EventRow[] } = await api.get("events", { environment, account_id, limit: AT_ONCE, ...period({ window: "30d" }, Date.now()), cursor });
      found.push(...page.rows.filter((row) => pairs.has(`${row.visitor_id} ${account_id}`)));
      cursor = page.next_cursor;
    } while (cursor !== undefined && found.length <= MAX_LABELED);
  }
  return found;
}

export function Ring({ links, onNone }: { links: Links["links"]; onNone: () => void }) {
  const { api, environment, notify } = useConsole();
  const [opened, open] = useState<"label" | "list" | "block">();
  const [undo, setUndo] = useState<{ text: string; back: Back }>();
  const chosen = chosenOf(links);
  const takeBack = useAction(async () => {
    await undo!.back();
    setUndo((now) => (now === undo ? undefined : now));
    notify("It is as it was before.");
  });
  const did = (text: string, back: Back) => {
    setUndo({ text, back });
    open(undefined);
    onNone();
  };
  if (links.length === 0 && undo === undefined) return null;
  return (
    <div class="bottom-bar">
      {links.length > 0 && (
        <p class="buttons">
          <span role="status">{said(chosen)} selected</span>
          <Button judge kind="primary" onClick={() => open("label")}>Label …</Button>
          <Button judge kind="primary" onClick={() => open("list")}>Add to a list …</Button>
          <Button judge kind="danger" onClick={() => open("block")}>Block all …</Button>
          <Button onClick={onNone}>Clear selection</Button>
        </p>
      )}
      {undo && <p class="buttons"><span role="status">{undo.text}</span> <Button judge kind="small" busy={takeBack.busy} onClick={() => takeBack.run()}>Undo</Button></p>}
      <Problem error={takeBack.error} />
      {opened === "block" && (
        <Dialog title={`Block ${said(chosen)}?`} submit="Block all" danger onClose={() => open(undefined)} onSubmit={async (form) => {
          const { back, reason } = await blockAll(api, environment, chosen, String(form.get("note")).trim());
          did(`${said(chosen)}: ${reason ?? "blocked from the next request on."}`, back);
        }}>
          <p>They are added to blocked_visitors and blocked_accounts, and removed from the lists of trusted ones.</p>
          <Field label="Note"><input name="note" maxLength={500} autocomplete="off" /></Field>
        </Dialog>
      )}
      {opened === "list" && <ToList chosen={chosen} onClose={() => open(undefined)} onDone={did} />}
      {opened === "label" && (
        <Dialog title={`Label the events of ${said(chosen)}`} submit="Label" onClose={() => open(undefined)} onSubmit={async (form) => {
          const label = String(form.get("label")) || null, reason = (label && String(form.get("reason"))) || null;
          const rows = await eventsOf(api, environment, links);
          if (rows.length > MAX_LABELED) throw new Error(`They have more than ${MAX_LABELED} events. Choose fewer of them.`);
          const set = (row: EventRow, to: string | null, why: string | null) => api.manage<void>("PUT", `events/${row.request_id}/label`, { label: to, label_reason: to === null ? null : why });
          const back = await inSteps(async (done) => {
            for (const row of rows) {
              await set(row, label, reason);
              done.push(() => set(row, row.label ?? null, row.label_reason ?? null));
            }
          });
          did(label === null ? `The labels of ${many(rows.length, "event")} are removed.` : `${many(rows.length, "event")} labeled ${label}.`, back);
        }}>
          <p>Those in {environment} that link them, of 30 days.</p>
          <Field label="Label"><Choice name="label" value="fraud" options={["fraud", "legitimate", ["", "none: remove it"]]} /></Field>
          <Field label="Reason"><Choice name="reason" value="multi_account" options={WHY} /></Field>
        </Dialog>
      )}
    </div>
  );
}

function ToList({ chosen, onClose, onDone }: { chosen: Chosen; onClose: () => void; onDone: (text: string, back: Back) => void }) {
  const { api } = useConsole();
  const { value: lists, error } = useLoad(async () => (await api.manage<{ lists: StoredList[] }>("GET", "lists")).lists.filter(({ kind }) => kind === "visitor" || kind === "account"), []);
  return (
    <Dialog title="Add to a list" submit="Add" disabled={lists === undefined} onClose={onClose} onSubmit={async (form) => {
      const list = lists!.find(({ name }) => name === form.get("list"))!, note = String(form.get("note")).trim();
      const { added, there, back } = await listAll(api, list, chosen, note);
      onDone(`${many(added, "entry", "entries")} added to ${list.name}${there > 0 ? `, ${there} were there` : ""}.`, back);
    }}>
      <Problem error={error} />
      <Field label="List"><Choice name="list" value="blocked_accounts" options={(lists ?? []).map(({ name, kind }): [string, string] => [name, `${name} (${kind})`])} /></Field>
      <Field label="Note"><input name="note" maxLength={500} autocomplete="off" /></Field>
    </Dialog>
  );
}
