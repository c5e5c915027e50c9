/** Visitor: events and what changed between them, addresses, tags, and erasure. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { isUncertain } from "../parts/identity.js";
import type { Texts } from "../parts/wire.js";
import { client, place } from "./eventcolumns.js";
import { AddressLink, NoSuch, TagLink } from "./event.js";
import { capital, count, country, many, words } from "./format.js";
import { useConsole, useLink, useLoad } from "./state.js";
import { Notes } from "./judging/notes.js";
import { Links } from "./links.js";
import { Standing } from "./standing.js";
import { AccountLink, AdminNote, Button, Card, type Column, Confirm, Decided, Id, Known, LabelBadge, Name, Show, Signals, Table, Time, Verdict, VisitorLink } from "./ui.js";
import type { EventRow, VisitorDetail } from "./wire.js";

type Tag = VisitorDetail["tags"][number];
type Address = VisitorDetail["addresses"][number];

const SEEN: Column<Tag | Address>[] = [
  { head: "First seen", cell: (row) => <Time at={row.first_seen} /> },
  { head: "Last seen", cell: (row) => <Time at={row.last_seen} /> },
  { head: "Events", cell: (row) => count(row.events), number: true },
];
const TAGS: Column<Tag>[] = [{ head: "Tag", cell: (row) => <TagLink tag={row.tag} /> }, ...SEEN];
const ADDRESSES: Column<Address>[] = [
  { head: "Address", cell: (row) => <AddressLink address={row.ip_address} /> },
  { head: "Network", cell: (row) => [row.country_code && country(row.country_code), row.asn_name ?? row.asn, row.anonymity_network].filter(Boolean).map((part, at) => <>{at > 0 && " · "}<bdi>{part}</bdi></>) },
  ...SEEN,
];

/** Its newest events, whose tags and addresses are listed. */
const MAX_LOOKED_AT = 200;
const MAX_TAGS = 50;

/** Why nothing is kept of a visitor: its one event says too little, or was a replay. */
export const whyUnknown = ({ events }: Pick<VisitorDetail, "events">, { linkage, certainty }: Pick<Texts, "linkage" | "certainty">): string =>
  (events[0]?.identifiable ? `${capital(linkage["replayed"]!)}.` : certainty["unidentifiable"]!);

export function Visitor() {
  const { api, environment, place: { id } } = useConsole();
  const loaded = useLoad((signal) => api.get<VisitorDetail>(`visitors/${encodeURIComponent(id)}`, { environment }, signal), [id, environment]);
  return <><Show of={loaded}>{(visitor) => <Shown visitor={visitor} />}</Show><NoSuch error={loaded.error} /></>;
}

function Shown({ visitor }: { visitor: VisitorDetail }) {
  const { environment, texts } = useConsole();
  const link = useLink();
  const elsewhere = visitor.event_count - visitor.environment_event_count;
  return (
    <>
      <p class="summary">
        <Id what="the visitor id">{visitor.visitor_id}</Id> <span>{many(visitor.event_count, "event")} kept{elsewhere > 0 && `, ${count(visitor.environment_event_count)} in ${environment}`}</span>
        <span>first <Time at={visitor.first_seen} />, last <Time at={visitor.last_seen} /></span>
      </p>
      {visitor.identifiable && <Standing kind="visitor" value={visitor.visitor_id} />}
      {!visitor.identifiable && <p class="note">{whyUnknown(visitor, texts)}</p>}
      {visitor.identifiable && <Links visitor={visitor.visitor_id} />}
      <Card title={`Events in ${environment}`}>
        {visitor.events.length === 0
          ? <p class="empty">None in {environment}. Choose another environment above.</p>
          : <Timeline events={visitor.events} of="visitor" />}
        {visitor.events.some(isUncertain) && <p class="quiet">Below 90 %: {texts.certainty["likeness"]}</p>}
        {visitor.next_cursor && <p><a href={link("events", "", { visitor: visitor.visitor_id, window: "30d" })}>Its events in the last 30 days</a></p>}
      </Card>
      {(visitor.environment_event_count > MAX_LOOKED_AT || visitor.tags.length === MAX_TAGS) && <p class="quiet">Tags and addresses are those of its newest {MAX_LOOKED_AT} events, at most {MAX_TAGS} tags.</p>}
      {visitor.tags.length > 0 && <Card title="Tags"><Table name="Tags" columns={TAGS} rows={visitor.tags} keyOf={(row) => row.tag} /></Card>}
      <Card title="Addresses">
        <Table name="Addresses" columns={ADDRESSES} rows={visitor.addresses} keyOf={(row) => row.ip_address} />
      </Card>
      <Notes of="visitors" id={visitor.visitor_id} />
      <Erase visitor={visitor} />
    </>
  );
}

/** Events with what changed between them. `of` is whose they are, which each of them need not say again. */
export const Timeline = ({ events, of }: { events: EventRow[]; of: "visitor" | "account" }) => (
  <ol class="timeline">{events.map((event) => <Visit key={event.request_id} event={event} of={of} />)}</ol>
);

function Visit({ event, of }: { event: EventRow; of: "visitor" | "account" }) {
  const { texts } = useConsole();
  const link = useLink();
  const changes = event.changes ?? [];
  return (
    <li>
      <p><a href={link("events", event.request_id)}><Time at={event.occurred_at} /></a> <Verdict row={event} /> <Decided decision={event.decision} /> <LabelBadge label={event.label} reason={event.label_reason} /> {event.action && <strong><Name of={event.action} /></strong>} {of === "visitor" ? event.account_id && <>as <AccountLink id={event.account_id} /></> : <VisitorLink id={event.visitor_id} short />} <span class="quiet"><Known row={event} /></span></p>
      <p class="quiet">{client(event)} · {place(event)}{event.tag && <> · <span class="tag">{event.tag}</span></>}</p>
      {(event.signals?.length ?? 0) > 0 && <p>Signals: <Signals fired={event.signals} /></p>}
      {changes.length > 0 && <p>Changed: {changes.map((name) => texts.changes[name] ?? words(name)).join(", ")}</p>}
    </li>
  );
}

const LETTERS = 4;

function Erase({ visitor }: { visitor: VisitorDetail }) {
  const { api, notify } = useConsole();
  const link = useLink();
  const [isAsking, setAsking] = useState(false);
  const [typed, setTyped] = useState("");
  const expected = visitor.visitor_id.slice(0, LETTERS);
  const erase = async () => {
    await api.manage("DELETE", `visitors/${visitor.visitor_id}`);
    notify("The visitor is erased, with all its events and reports.");
    location.hash = link("visitors");
  };
  return (
    <Card title="Erase this visitor">
      <p>Erases the visitor in every environment: all events, reports, and pending webhooks. It cannot be undone.</p>
      <AdminNote what="Erasing" />
      <Button admin kind="danger" onClick={() => setAsking(true)}>Erase visitor …</Button>
      {isAsking && (
        <Confirm title="Erase this visitor for good?" submit="Erase" onClose={() => setAsking(false)} onConfirm={async () => {
          if (typed !== expected) throw new Error(`Type ${expected}, the first ${LETTERS} characters of the id, to confirm.`);
          await erase();
        }}>
          <p><code>{visitor.visitor_id}</code> and everything stored about it. Many events take minutes; it goes on if you leave.</p>
          <label class="field"><span>Type <code>{expected}</code> to confirm</span>
            <input value={typed} autocomplete="off" spellcheck={false} onInput={(event) => setTyped(event.currentTarget.value)} />
          </label>
        </Confirm>
      )}
    </Card>
  );
}
