/** What else there is to know of the visit: its network, and what it cost in time and bytes. */
/** @jsxImportSource preact */
import type { Timing } from "@svc/web";
import type { Explained, Texts } from "./wire.js";

type Row = [name: string, value: string | undefined];

export function Facts({ event, timing, texts }: {
  event: Explained;
  timing: Timing | null;
  texts: Texts;
}) {
  return (
    <div class="pair">
      <section class="card">
        <h2>Your network</h2>
        <List rows={network(event, texts)} />
      </section>
      <section class="card">
        <h2>Time and size</h2>
        <List rows={costs(timing)} />
      </section>
    </div>
  );
}

function network(event: Explained, texts: Texts): Row[] {
  const known = event.document?.network;
  const asn = known?.asn && `AS${known.asn}${known.asn_name ? ` ${known.asn_name}` : ""}`;
  return [
    ["Address", event.ip_address],
    ["Country", known?.country_name ?? known?.country_code],
    ["Network", asn],
    ["Anonymity", known?.anonymity_network ?? (known?.country_code ? "none found" : undefined)],
    ["Unknown because", known?.reason && (texts.reasons[known.reason] ?? known.reason)],
    ["TLS handshake", event.document?.connection?.tls],
  ];
}

function costs(timing: Timing | null): Row[] {
  if (timing === null) return [];
  const { serverMs } = timing;
  const network = Math.max(0, timing.networkMs - (serverMs ?? 0));
  return [
    ["Collect", milliseconds(timing.collectMs)],
    ["Network", milliseconds(network)],
    ["Server", serverMs === undefined ? undefined : milliseconds(serverMs)],
    ["Sent", `${(timing.sentBytes / 1000).toFixed(1)} kB in ${timing.attempts === 1 ? "one attempt" : `${timing.attempts} attempts`}`],
  ];
}

const milliseconds = (value: number) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;

function List({ rows }: { rows: Row[] }) {
  return (
    <dl>
      {rows.map(([name, value]) => value !== undefined && value !== "" && (
        <div key={name}><dt>{name}</dt><dd>{value}</dd></div>
      ))}
    </dl>
  );
}
