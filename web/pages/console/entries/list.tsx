/** List: its entries, with note and expiry; many at once, from a file, and to one. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { FilterBar } from "../filterbar.js";
import { count, country, many } from "../format.js";
import { NoEffect, standingOf } from "../standing.js";
import { useAction, useConsole, useLink, useLoad, usePages } from "../state.js";
import { AccountLink, Button, type Column, Confirm, Dialog, Field, Id, More, Problem, Several, Show, Table, Time, useSelection, VisitorLink } from "../ui.js";
import type { Entry, Page, StoredList, Total } from "../wire.js";
import { inParts, type NewEntry, pasted, type Table as Read, tableOf } from "./csv.js";

const AT_ONCE = 1000;
const PLACEHOLDERS: Record<string, string> = { address: "203.0.113.7\n198.51.100.0/24", account: "user-8271", visitor: "0qppzPLvL54VURDkQrfS", country: "GB", asn: "20712", origin: "https://shop.example", tag: "order-1042" };

export function List() {
  const { api, place: { id } } = useConsole();
  const list = useLoad(() => api.manage<StoredList>("GET", `lists/${encodeURIComponent(id)}`), [id]);
  return <Show of={list}>{(found) => <Shown list={found} onChanged={list.reload} />}</Show>;
}

type Open = "add" | "import" | "rename" | "delete";

function Shown({ list, onChanged }: { list: StoredList; onChanged: () => void }) {
  const { api, environment, notify, place: { query } } = useConsole();
  const link = useLink();
  const [open, setOpen] = useState<Open>();
  const path = `lists/${list.id}`;
  const { loaded, more, busy, error } = usePages(
    (cursor) => api.manage<Page & { entries: Entry[] }>("GET", `${path}/entries`, undefined, { q: query.q, limit: 100, cursor }),
    (page) => page.entries,
    [list.id, query.q],
  );
  const standing = useLoad(() => standingOf(api, environment), [environment]);
  const counted = useLoad(async (signal) => (query.q ? api.get<Total>(`${path}/count`, { q: query.q }, signal) : undefined), [list.id, query.q]).value;
  const rows = loaded.value?.rows ?? [];
  const selection = useSelection(rows.map(({ value }) => value));
  // Whatever came of it: where it failed, a part may be done.
  const close = () => {
    setOpen(undefined);
    loaded.reload();
    onChanged();
  };
  const done = (said: string) => {
    close();
    notify(said);
  };
  /** In requests of a thousand: what was added before one that is refused stays, and the error says how many. */
  const add = async (entries: NewEntry[]) => {
    if (entries.length === 0) throw new Error("It contains no value.");
    let added = 0, replaced = 0;
    for (const some of inParts(entries, AT_ONCE)) {
      try {
        const counts = await api.manage<{ added: number; replaced: number }>("POST", `${path}/entries`, { entries: some });
        added += counts.added;
        replaced += counts.replaced;
      } catch (caught) {
        if (added + replaced > 0) throw new Error(`${caught instanceof Error ? caught.message : String(caught)} ${many(added + replaced, "entry", "entries")} before it are saved.`);
        throw caught;
      }
    }
    done(`${many(added, "entry", "entries")} added${replaced > 0 ? `, ${replaced} replaced` : ""}.`);
  };
  const remove = useAction(async () => {
    const values = [...selection.chosen];
    await api.manage("DELETE", `${path}/entries`, { values });
    selection.choose(new Set());
    done(`${many(values.length, "entry", "entries")} removed.`);
  });
  const columns: Column<Entry>[] = [
    { head: "Value", cell: ({ value }) => <Value kind={list.kind} value={value} /> },
    { head: "Note", cell: ({ note }) => note },
    { head: "Expires", cell: ({ expires_at }) => <Time at={expires_at} /> },
    { head: "Added", cell: ({ created_at }) => <Time at={created_at} /> },
  ];
  return (
    <>
      <p class="summary"><strong>{list.name}</strong> <span>of kind {list.kind}, {many(list.entries, "entry", "entries")}{counted && `, of which ${counted.is_exact ? "" : "more than "}${count(counted.count)} match`}</span> <Id what="the id of the list">{list.id}</Id></p>
      <p class="buttons">
        <Button judge kind="primary" onClick={() => setOpen("add")}>Add entries</Button>
        <Button judge onClick={() => setOpen("import")}>Import …</Button>
        <a class="button large" href={`console/api/lists/${list.id}/export`} download>Export</a>
        <Button developer onClick={() => setOpen("rename")}>Rename</Button>
        <Button developer kind="danger" onClick={() => setOpen("delete")}>Delete</Button>
        <a href={link("lists")}>All lists</a>
      </p>
      <NoEffect list={standing.value?.find(({ name }) => name === list.name)} environment={environment} isList />
      <FilterBar names={["q"]} labels={{ q: "Value begins with" }} />
      {selection.chosen.size > 0 && <div class="bottom-bar"><p class="buttons"><span role="status">{many(selection.chosen.size, "entry", "entries")} selected</span><Button judge kind="danger" busy={remove.busy} onClick={() => remove.run()}>Remove</Button></p><Problem error={remove.error} /></div>}
      <Show of={loaded}>{({ rows: entries, cursor }) => (
        <>
          <Table name={`Entries of ${list.name}`} columns={columns} rows={entries} keyOf={({ value }) => value} selection={selection} empty={<p>{query.q ? "No entry begins with this." : "No entry yet."}</p>} />
          <More show={cursor !== undefined} busy={busy} error={error} onMore={more}>Show more</More>
        </>
      )}</Show>
      {open === "add" && <Add kind={list.kind} onClose={close} onAdd={add} />}
      {open === "import" && <Import kind={list.kind} onClose={close} onAdd={add} />}
      {open === "rename" && (
        <Dialog title={`Rename ${list.name}`} submit="Rename" onClose={close} onSubmit={async (values) => { await api.manage("PATCH", path, { name: String(values.get("name")).trim() }); done("Renamed."); }}>
          <Field label="Name" hint="Small letters, digits and underscores. A list that a rule uses cannot be renamed."><input name="name" required pattern="[a-z][a-z0-9_]{0,47}" defaultValue={list.name} /></Field>
        </Dialog>
      )}
      {open === "delete" && (
        <Confirm title={`Delete ${list.name}?`} submit="Delete" onClose={close} onConfirm={async () => { await api.manage("DELETE", path); notify("The list is deleted."); location.hash = link("lists"); }}>
          <p>With its {many(list.entries, "entry", "entries")}. It cannot be undone. Lists that a rule uses and the six built-in lists cannot be deleted.</p>
        </Confirm>
      )}
    </>
  );
}

function Value({ kind, value }: { kind: string; value: string }) {
  const link = useLink();
  if (kind === "visitor") return <VisitorLink id={value} />;
  if (kind === "account") return <AccountLink id={value} />;
  if (kind === "country") return <>{value} <span class="quiet">{country(value)}</span></>;
  if (kind === "address") return <a href={link("visitors", "", value.includes("/") ? { network: value } : { ip_address: value })}>{value}</a>;
  return <span class="tag">{value}</span>;
}

const MAX_SHOWN = 5;

/** The first entries as they would be added. */
function First({ entries }: { entries: NewEntry[] }) {
  return <Table name="The first entries" rows={entries.slice(0, MAX_SHOWN)} keyOf={({ value }) => value} columns={[
    { head: "Value", cell: ({ value }) => <span class="tag">{value}</span> },
    { head: "Note", cell: ({ note }) => note },
    { head: "Expires", cell: ({ expires_at }) => <Time at={expires_at} /> },
  ]} />;
}

function Add({ kind, onClose, onAdd }: { kind: string; onClose: () => void; onAdd: (entries: NewEntry[]) => Promise<void> }) {
  const [text, setText] = useState("");
  let values: string[] = [], fault: unknown;
  try {
    values = pasted(text, kind);
  } catch (caught) {
    fault = caught;
  }
  return (
    <Dialog title="Add entries" submit="Add" hasDraft={text.trim() !== ""} disabled={fault !== undefined} onClose={onClose} onSubmit={async (form) => {
      const until = String(form.get("expires"));
      const note = String(form.get("note")).trim(), expires_at = until === "" ? null : new Date(until).toISOString();
      await onAdd(values.map((value) => ({ value, note, expires_at })));
    }}>
      <Field label="Values, one per line" hint="Paste as many as you like. A value that is already on the list gets the new note and expiry."><textarea name="values" rows={6} required spellcheck={false} placeholder={PLACEHOLDERS[kind]} value={text} onInput={(event) => setText(event.currentTarget.value)} /></Field>
      {values.length > 1 && <p role="status">{many(values.length, "value")}: <Several of={values} most={MAX_SHOWN} /></p>}
      <Problem error={fault} />
      <Field label="Note"><input name="note" maxLength={500} autocomplete="off" /></Field>
      <Field label="Expires" hint="In your time zone. Leave empty for never."><input type="datetime-local" name="expires" /></Field>
    </Dialog>
  );
}

function Import({ kind, onClose, onAdd }: { kind: string; onClose: () => void; onAdd: (entries: NewEntry[]) => Promise<void> }) {
  const [read, setRead] = useState<Read>();
  const look = useAction(async (file: File | undefined) => {
    setRead(undefined);
    if (!file) return;
    let text: string;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    } catch {
      throw new Error("The file is not UTF-8 text: save it as UTF-8.");
    }
    setRead(tableOf(text, kind));
  });
  return (
    <Dialog title="Import entries" submit="Import" disabled={!read} onClose={onClose} onSubmit={() => onAdd(read!.entries)}>
      <Field label="A CSV file" hint="Columns value, note and expires_at, as in an export; value alone is enough."><input type="file" accept=".csv,text/csv,text/plain" required onChange={(event) => look.run(event.currentTarget.files?.[0])} /></Field>
      <Problem error={look.error} />
      {read && <><p role="status">{many(read.entries.length, "entry", "entries")}, separated by {read.separator}s, {read.hasHeader ? "with a header" : "without a header"}.{read.entries.length > MAX_SHOWN && ` The first ${MAX_SHOWN}:`}</p><First entries={read.entries} /></>}
    </Dialog>
  );
}
