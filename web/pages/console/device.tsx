/** The app of an event and its device: what they say of themselves, and what is proven of that. */
/** @jsxImportSource preact */
import type { Texts } from "../parts/wire.js";
import { withCode } from "../parts/score.js";
import { type App, appOf, type Attested, MANY_LEFT_OUT } from "./app.js";
import { words } from "./format.js";
import { useConsole } from "./state.js";
import { Card, Facts, Id, Time } from "./ui.js";
import type { EventDetail } from "./wire.js";

export function Device({ event }: { event: EventDetail["event"] }) {
  const { texts } = useConsole();
  const app = appOf(event, texts.evidence);
  if (app === undefined) return null;
  return (
    <div class="pair">
      <Card title="App">
        <Facts rows={[
          ["Model", app.model],
          ["System", [app.system, app.bridge && `by ${app.bridge}`].filter(Boolean).join(", ")],
          ["Build", app.build],
          ["App", app.name && [app.name, app.version].filter(Boolean).join(" ")],
          ["Installed by", app.installer],
          ["Signed by", app.signer && <Id what="the digest of the signer">{app.signer}</Id>],
        ]} />
        <LeftOut names={app.leftOut} />
      </Card>
      <Card title="Integrity">
        <Attestation attested={app.attested} texts={texts} />
        <Flags flags={app.flags} texts={texts} />
      </Card>
    </div>
  );
}

function LeftOut({ names }: { names: string[] }) {
  if (names.length === 0) return null;
  return (
    <>
      <p class="quiet">Not read: {names.join(", ")}.</p>
      {names.length >= MANY_LEFT_OUT && <p>So many missing fields on one model point to a fault of the SDK, not of the device: report it.</p>}
    </>
  );
}

const TONES: Record<Attested["state"], string> = { verified: "low", failed: "high", none: "" };

function Attestation({ attested: { state, reasons, facts }, texts }: { attested: Attested; texts: Texts }) {
  const { format, app_id, environment, counter, key_first_seen_at, bundle_version, distribution } = facts;
  return (
    <>
      <p>Attestation <span class={`badge ${TONES[state]}`}>{state}</span> {state !== "none" && <span class="quiet">{format}</span>}</p>
      {state === "none" && reasons.length === 0 && <p class="quiet">Nothing in this report is proven: app and device are what the client claims.</p>}
      {reasons.length > 0 && <ul class="evidence">{reasons.map((name) => <li key={name}>{withCode(texts.evidence[name] ?? name)}</li>)}</ul>}
      <Facts rows={[
        ["Attested app", app_id],
        ["Attested version", bundle_version],
        ["Environment", environment],
        ["Installed from", distribution && words(distribution)],
        ["Assertions of its key", counter],
        ["Key known since", key_first_seen_at && <Time at={key_first_seen_at} />],
      ]} />
    </>
  );
}

function Flags({ flags, texts }: { flags: App["flags"]; texts: Texts }) {
  if (flags.length === 0) return <p class="quiet">The report sets no flag.</p>;
  return (
    <>
      <ul class="evidence">
        {flags.map(({ evidence, weight }) => (
          <li key={evidence}>
            <span class="badge">hint</span> {withCode(texts.evidence[evidence] ?? evidence)} <span class="quiet">{weight === undefined ? "Adds nothing to the score." : `+${weight}`}</span>
          </li>
        ))}
      </ul>
      <p class="quiet">A hint is what code in the app reports: a person who controls the device can suppress or fake it.</p>
    </>
  );
}
