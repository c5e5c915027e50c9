/** Lists: all of an organization. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { count } from "../format.js";
import { useConsole, useLink, useLoad } from "../state.js";
import { Button, Card, Choice, type Column, Dialog, Field, Show, Table, Time } from "../ui.js";
import type { StoredList } from "../wire.js";

export { List } from "./list.js";

const KINDS: [string, string][] = [
  ["visitor", "visitors"], ["account", "accounts"], ["address", "addresses and networks"], ["country", "countries"],
  ["asn", "networks by AS number"], ["origin", "origins"], ["tag", "tags"],
];
const NAMES = new Map(KINDS);

export function Lists() {
  const { api, notify } = useConsole();
  const link = useLink();
  const [isMaking, setMaking] = useState(false);
  const lists = useLoad(async () => (await api.manage<{ lists: StoredList[] }>("GET", "lists")).lists, []);
  const columns: Column<StoredList>[] = [
    { head: "Name", cell: (list) => <a href={link("lists", list.id)}>{list.name}</a> },
    { head: "Kind", cell: (list) => NAMES.get(list.kind) ?? list.kind },
    { head: "Entries", cell: (list) => count(list.entries), number: true },
    { head: "Changed", cell: (list) => <Time at={list.updated_at} /> },
  ];
  return (
    <>
      <p class="buttons"><Button developer kind="primary" onClick={() => setMaking(true)}>Make a list</Button></p>
      <Card title="Lists">
        <p class="quiet">A list does nothing by itself: an active rule must read it, with in_list("name"). Changes take effect from the next request on.</p>
        <Show of={lists}>{(rows) => <Table name="Lists" columns={columns} rows={rows} keyOf={(list) => list.id} />}</Show>
      </Card>
      {isMaking && (
        <Dialog title="Make a list" submit="Make" onClose={() => { setMaking(false); lists.reload(); }} onSubmit={async (values) => {
          const made = await api.manage<StoredList>("POST", "lists", { name: String(values.get("name")).trim(), kind: values.get("kind") });
          notify("The list is created. Use it in a rule.");
          location.hash = link("lists", made.id);
        }}>
          <Field label="Name" hint="Small letters, digits and underscores, such as vip_accounts."><input name="name" required pattern="[a-z][a-z0-9_]{0,47}" maxLength={48} autocomplete="off" spellcheck={false} /></Field>
          <Field label="Kind" hint="It cannot be changed later."><Choice name="kind" value="account" options={KINDS} /></Field>
        </Dialog>
      )}
    </>
  );
}
