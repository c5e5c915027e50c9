/** Event: why an identification is what it is. */
/** @jsxImportSource preact */
import { Velocity } from "../parts/activity.js";
import { Certainty, Proof } from "../parts/identity.js";
import { Score } from "../parts/score.js";
import { ApiError } from "./api.js";
import { Attempts } from "./attempts.js";
import { Decision } from "./decision.js";
import { Device } from "./device.js";
import { client } from "./eventcolumns.js";
import { capital, country, words } from "./format.js";
import { EventLabel } from "./judging/label.js";
import { useConsole, useLink, useLoad } from "./state.js";
import { Standing } from "./standing.js";
import { AccountLink, Card, Decided, type Fact, Facts, Id, Of, Show, Time, Verdict, VisitorLink } from "./ui.js";
import type { EventDetail } from "./wire.js";

export function Event() {
  const { api, place: { id } } = useConsole();
  const loaded = useLoad((signal) => api.get<EventDetail>(`events/${encodeURIComponent(id)}`, {}, signal), [id]);
  return <><Show of={loaded}>{(found) => <Of environment={found.event.environment}><Shown found={found} onChanged={loaded.reload} /></Of>}</Show><NoSuch error={loaded.error} /></>;
}

/** What was looked for as an id may be a tag of this form. */
export function NoSuch({ error }: { error: unknown }) {
  const { place: { id } } = useConsole();
  const link = useLink();
  return error instanceof ApiError && error.status === 404 ? <p><a href={link("visitors", "", { tag: id })}>Look for it as a tag</a></p> : null;
}

function Shown({ found, onChanged }: { found: EventDetail; onChanged: () => void }) {
  const { event } = found;
  const { texts } = useConsole();
  const link = useLink();
  return (
    <>
      <p class="summary">
        <Verdict row={event} /> <Decided decision={event.decision} /> <Time at={event.occurred_at} /> <span>{event.environment}</span> <Id what="the request id">{event.request_id}</Id>
      </p>
      <nav class="buttons" aria-label="Visits of this visitor">
        {found.previous && <a href={link("events", found.previous)}>Previous visit</a>}
        {found.next && <a href={link("events", found.next)}>Next visit</a>}
      </nav>
      <EventLabel event={event} onChanged={onChanged} />
      <Decision event={event} />
      <Score event={event} texts={texts} />
      <Recognition found={found} />
      <Device event={event} />
      {event.velocity && <Card title="Velocity"><Velocity event={event} names={["Visitor", "Address", event.platform === "web" ? "Browsers" : "Devices"]} /></Card>}
      <div class="pair">
        <Card title="Client">
          <Facts rows={clientFacts(found)} />
        </Card>
        <Card title="Network">
          <Facts rows={networkFacts(found, texts.reasons)} />
        </Card>
      </div>
      <Card title="Webhooks about this event">
        <Attempts rows={found.deliveries} empty="No delivery was attempted. Endpoints that subscribe to identification.completed or visitor.suspect receive it." />
      </Card>
      <Report title="The report, as it was sent" content={event.document?.signals} />
      <Report title="The deferred report" content={event.deferred_signals} />
    </>
  );
}

export function Recognition({ found: { event } }: { found: EventDetail }) {
  const { texts } = useConsole();
  const linkage = event.document?.linkage;
  const changes = event.document?.changes ?? [];
  return (
    <Card title="How the visitor was recognized">
      <p class="id"><VisitorLink id={event.visitor_id} /></p>
      {event.identifiable !== false && <Standing kind="visitor" value={event.visitor_id} />}
      {linkage && <p>{capital(texts.linkage[linkage.outcome] ?? words(linkage.outcome))}.</p>}
      <Certainty event={event} texts={texts} />
      <Proof event={event} texts={texts} />
      {linkage?.token_conflict && <p><strong>The client token and the device point to different visitors.</strong></p>}
      {linkage?.split_from !== undefined && <p><VisitorLink id={linkage.split_from} />: {texts.linkage.split_from ?? "split_from"}.</p>}
      {changes.length > 0
        ? <><p>Changed since the last visit:</p><ul class="evidence">{changes.map((name) => <li>{capital(texts.changes[name] ?? words(name))}</li>)}</ul></>
        : <p class="quiet">{event.visitor_is_new ? "There is no earlier visit to compare with." : "Nothing changed since the last visit."}</p>}
    </Card>
  );
}

function clientFacts({ event, key }: EventDetail): Fact[] {
  return [
    ["Client", client(event)],
    ["Device", event.device_kind],
    ["Kind", event.visitor_kind && words(event.visitor_kind)],
    ["Origin", event.origin],
    ["Account", event.account_id && <><AccountLink id={event.account_id} />{event.account_verified && " (named by your server)"}</>],
    ["Action", event.action],
    ["Tag", event.tag && <TagLink tag={event.tag} />],
    ["SDK", `${event.sdk_platform} ${event.sdk_version}`.replace(" unknown", "")],
    ["Key", key && (key.name ? <><bdi>{key.name}</bdi> …{key.last4}</> : key.id)],
  ];
}

export function TagLink({ tag }: { tag: string }) {
  const link = useLink();
  return <a class="tag" href={link("visitors", "", { tag })} title="Visitors with this tag">{tag}</a>;
}

export function AddressLink({ address }: { address: string }) {
  const link = useLink();
  return <a href={link("visitors", "", { ip_address: address })} title="Visitors from this address">{address}</a>;
}

function networkFacts({ event }: EventDetail, reasons: Record<string, string>): Fact[] {
  return [
    ["Address", <AddressLink address={event.ip_address} />],
    ["Country", event.country_code && country(event.country_code)],
    ["Network", [event.asn && `AS${event.asn.replace(/^AS/, "")}`, event.asn_name].filter(Boolean).join(" ")],
    ["Anonymity", event.anonymity_network ?? "none found"],
    ["Unknown because", event.reason && (reasons[event.reason] ?? words(event.reason))],
    ["Connection by", event.document?.connection?.os],
    ["TLS handshake", event.document?.connection?.tls],
  ];
}

function Report({ title, content }: { title: string; content: unknown }) {
  if (content === undefined || content === null) return null;
  return (
    <details class="card">
      <summary class="report"><h2>{title}</h2></summary>
      <pre tabIndex={0}><code>{JSON.stringify(content, null, 2)}</code></pre>
    </details>
  );
}
