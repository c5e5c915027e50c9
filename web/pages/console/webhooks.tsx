/** Webhooks: endpoints with their health, and the attempts to reach them. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { Attempts } from "./attempts.js";
import { Filters } from "./filterbar.js";
import { count, many } from "./format.js";
import { changed, useAction, useConsole, useLoad, usePages, useQuery } from "./state.js";
import { Button, Card, Choice, Confirm, Copy, Dialog, Facts, Field, Id, More, Problem, Secret, Show, Time } from "./ui.js";
import type { Attempt, Endpoint, Page } from "./wire.js";

const EVENTS = ["identification.completed", "visitor.suspect", "identification.refused", "billing.status_changed", "usage.daily_settled", "review.opened", "review.closed", "webhook.test"];
const TONES = { active: "low", paused: "", failing: "high" };
const FORMATS: [string, string][] = [["json", "JSON, signed"], ["slack", "Slack message"], ["discord", "Discord message"], ["teams", "Microsoft Teams message"]];
const AUDIENCES: [string, string][] = [["live", "live: production traffic"], ["test", "test: staging and development"]];

/** What is ticked at first: everything for a program, and for people what somebody has to look at. */
const FIRST = { program: ["identification.completed"], people: ["visitor.suspect", "review.opened"] };

type Open = { is: "edit"; endpoint?: Endpoint } | { is: "rotate" | "delete"; endpoint: Endpoint } | { is: "secret" } & Issued;

export function Webhooks() {
  const { api, place: { query: { endpoint } } } = useConsole();
  const [open, setOpen] = useState<Open>();
  const endpoints = useLoad(async () => (await api.manage<{ endpoints: Endpoint[] }>("GET", "webhooks")).endpoints, []);
  const attempts = usePages(
    (cursor) => api.manage<Page & { deliveries: Attempt[] }>("GET", "webhook-deliveries", undefined, { limit: 50, endpoint_id: endpoint, cursor }),
    (answer) => answer.deliveries,
    [endpoint],
  );
  const done = (next?: Open) => {
    setOpen(next);
    endpoints.reload();
  };
  const refresh = () => {
    endpoints.reload();
    attempts.loaded.reload();
  };
  return (
    <>
      <p class="buttons"><Button developer kind="primary" onClick={() => setOpen({ is: "edit" })}>Add an endpoint</Button></p>
      <Show of={endpoints}>{(found) => found.length === 0
        ? <div class="empty"><p>No endpoint yet. Add one to receive every identification within seconds.</p></div>
        : <>{found.map((endpoint) => <EndpointCard key={endpoint.id} endpoint={endpoint} onOpen={setOpen} onChanged={refresh} />)}</>}</Show>
      <Card title="Attempts" actions={<Button kind="small" onClick={refresh}>Refresh</Button>}>
        <EndpointFilter known={endpoints.value ?? []} />
        <Show of={attempts.loaded}>{({ rows, cursor }) => (
          <>
            <Attempts rows={rows} empty={cursor !== undefined ? "None of the newest attempts match. Look further back." : endpoint ? "No delivery to this endpoint in the last 30 days. Send it a test, or clear the filter." : "No delivery in the last 30 days. Send a test to an endpoint to see one."} />
            <More show={cursor !== undefined} busy={attempts.busy} error={attempts.error} onMore={attempts.more} />
          </>
        )}</Show>
      </Card>
      {open && <Opened open={open} onClose={() => done()} onDone={done} />}
    </>
  );
}

/** One endpoint of those that there are; an address may also name one that was deleted. */
function EndpointFilter({ known }: { known: Endpoint[] }) {
  const { place: { query: { endpoint } } } = useConsole();
  const change = useQuery();
  const options = known.map(({ id, url, description }): [string, string] => [id, description ? `${description}: ${url}` : url]);
  if (endpoint && !known.some(({ id }) => id === endpoint)) options.push([endpoint, endpoint]);
  return (
    <Filters clear={endpoint !== undefined}>
      <Field label="Endpoint"><Choice value={endpoint ?? ""} options={[["", "all"], ...options]} onPick={(id) => change({ endpoint: id })} /></Field>
    </Filters>
  );
}

function EndpointCard({ endpoint, onOpen, onChanged }: { endpoint: Endpoint; onOpen: (open: Open) => void; onChanged: () => void }) {
  const { api, notify } = useConsole();
  const path = `webhooks/${endpoint.id}`;
  const signed = endpoint.format === "json";
  const act = useAction(async (method: string, to: string, body: unknown, said: string) => {
    await api.manage(method, to, body);
    notify(said);
    onChanged();
  });
  const pause = (paused: boolean, said: string) => () => act.run("PATCH", path, { paused }, said);
  const named = (action: string) => `${action} ${endpoint.url}`;
  return (
    <Card title={endpoint.description || "Endpoint"} actions={<span class={`badge ${TONES[endpoint.status]}`}>{endpoint.status}</span>}>
      <p class="url"><code>{endpoint.url}</code></p>
      {endpoint.status === "failing" && <p class="note">Recover makes it active again. Deliveries that have failed for good are not repeated: redeliver them below, or ask the operator.</p>}
      <Facts rows={[
        ["Events", endpoint.events.join(", ")],
        ["Traffic", AUDIENCES.find(([name]) => name === endpoint.environment)?.[1] ?? endpoint.environment],
        ["Format", FORMATS.find(([name]) => name === endpoint.format)?.[1] ?? endpoint.format],
        ["Filter", endpoint.filter && <><code>{endpoint.filter}</code>{endpoint.filter_errors_24h ? ` failed for ${many(endpoint.filter_errors_24h, "event")} in 24 hours, which were not sent: ask present() first` : ""}</>],
        ["Last 24 hours", `${count(endpoint.delivered_24h)} delivered, ${count(endpoint.failed_24h)} failed`],
        ["Failing since", endpoint.failing_since && <Time at={endpoint.failing_since} />],
        ["Last delivery", <Time at={endpoint.last_delivery_at} />],
        ["Secret", signed ? <>…{endpoint.secret_last4}{endpoint.previous_secret_expires_at && <> and the previous one until <Time at={endpoint.previous_secret_expires_at} /></>}</> : undefined],
        ["Id", <Id what="the endpoint's id">{endpoint.id}</Id>],
      ]} />
      <p class="buttons">
        <Button developer busy={act.busy} name={named("Test")} onClick={() => act.run("POST", `${path}/test`, undefined, "A test is on its way. Refresh the attempts to see it.")}>Test</Button>
        {endpoint.status === "failing" && <Button developer busy={act.busy} name={named("Recover")} onClick={pause(false, "The endpoint is active again.")}>Recover</Button>}
        {endpoint.status === "paused"
          ? <Button developer busy={act.busy} name={named("Resume")} onClick={pause(false, "Resumed: waiting deliveries are sent now.")}>Resume</Button>
          : <Button developer busy={act.busy} name={named("Pause")} onClick={pause(true, "Paused: no new deliveries are queued.")}>Pause</Button>}
        {signed && <Button developer name={named("Rotate secret of")} onClick={() => onOpen({ is: "rotate", endpoint })}>Rotate secret</Button>}
        <Button developer name={named("Edit")} onClick={() => onOpen({ is: "edit", endpoint })}>Edit</Button>
        <Button developer kind="danger" name={named("Delete")} onClick={() => onOpen({ is: "delete", endpoint })}>Delete</Button>
      </p>
      <Problem error={act.error} />
    </Card>
  );
}

interface Issued {
  endpoint: Endpoint;
  secret: string;
  standard_secret: string;
}

function Opened({ open, onClose, onDone }: { open: Open; onClose: () => void; onDone: (next?: Open) => void }) {
  const { api, notify } = useConsole();
  const path = `webhooks/${open.endpoint?.id}`;
  const show = (issued: Issued) => onDone({ is: "secret", ...issued });
  switch (open.is) {
    case "edit":
      return (
        <Edit endpoint={open.endpoint} onClose={onClose} onSave={async (body) => {
          if (!open.endpoint) {
            const issued = await api.manage<Issued>("POST", "webhooks", body);
            if (issued.secret) return show(issued);
          } else await api.manage("PATCH", path, changed(body, open.endpoint));
          notify("The endpoint is saved.");
          onDone();
        }} />
      );
    case "secret":
      return (
        <Secret title="The signing secret" secret={open.secret} onClose={onClose}>
          <p class="quiet">Check every webhook with it: the header X-Svc-Signature is made with this secret.</p>
          <p>For a library of Standard Webhooks, the same secret:</p>
          <p class="secret"><code>{open.standard_secret}</code> <Copy text={open.standard_secret} what="the secret for Standard Webhooks" /></p>
        </Secret>
      );
    case "rotate":
      return (
        <Dialog title="Rotate the signing secret?" submit="Rotate" onClose={onClose} onSubmit={async (values) =>
          show(await api.manage<Issued>("POST", `${path}/rotate-secret`, { previous_secret_valid_hours: Number(values.get("hours")) }))
        }>
          <p class="url"><code>{open.endpoint.url}</code></p>
          <Field label="Hours for which the previous secret also signs" hint="Use 0 when the secret was leaked.">
            <input type="number" name="hours" min={0} max={168} defaultValue="24" required />
          </Field>
        </Dialog>
      );
    case "delete":
      return (
        <Confirm title="Delete this endpoint?" submit="Delete" onClose={onClose} onConfirm={async () => {
          await api.manage("DELETE", path);
          notify("The endpoint is deleted.");
          onDone();
        }}>
          <p class="url"><code>{open.endpoint.url}</code></p>
          <p>Deliveries to it stop at once. Waiting ones are dropped.</p>
        </Confirm>
      );
  }
}

function Edit({ endpoint, onClose, onSave }: { endpoint: Endpoint | undefined; onClose: () => void; onSave: (body: object) => Promise<void> }) {
  const [format, setFormat] = useState(endpoint?.format ?? "json");
  const [ticked, setTicked] = useState<string[] | undefined>(endpoint?.events);
  const isChat = format !== "json";
  const chosen = ticked ?? (isChat ? FIRST.people : FIRST.program);
  const tick = (one: string, is: boolean) => setTicked(is ? [...chosen, one] : chosen.filter((other) => other !== one));
  return (
    <Dialog title={endpoint ? "Edit the endpoint" : "Add an endpoint"} submit="Save" onClose={onClose} onSubmit={async (values) => {
      if (values.getAll("events").length === 0) throw new Error("Choose at least one event.");
      await onSave({
        url: String(values.get("url")).trim(),
        environment: values.get("environment"),
        events: values.getAll("events"),
        description: String(values.get("description")).trim(),
        format: values.get("format"),
        filter: String(values.get("filter")).trim() || null,
      });
    }}>
      <Field label="Address" hint="https, on a public host."><input name="url" type="url" required maxLength={2048} placeholder="https://shop.example/webhooks" defaultValue={endpoint?.url} /></Field>
      <Field label="Description"><input name="description" maxLength={200} defaultValue={endpoint?.description} /></Field>
      <Field label="Traffic"><Choice name="environment" value={endpoint?.environment ?? "live"} options={AUDIENCES} /></Field>
      <Field label="Format" hint="Messages for people are not signed. Use the address of an incoming webhook or workflow."><Choice name="format" value={format} options={FORMATS} onPick={setFormat} /></Field>
      <Field label="Filter" hint={'A condition like that of a rule, such as score >= 60 && present("account.id"). Only identifications and reviews for which it is true are sent. Leave it empty to send all.'}>
        <textarea name="filter" rows={3} maxLength={2000} spellcheck={false} defaultValue={endpoint?.filter} />
      </Field>
      <fieldset><legend>Events</legend>
        {isChat && <p class="quiet">Each identification is one message, however many of these events it causes.</p>}
        {EVENTS.map((one) => <label key={one}><input type="checkbox" name="events" value={one} checked={chosen.includes(one)} onChange={(event) => tick(one, event.currentTarget.checked)} /> {one}</label>)}
      </fieldset>
    </Dialog>
  );
}
