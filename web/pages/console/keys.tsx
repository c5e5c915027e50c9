/** Keys: SDK keys and proxy keys, their origins, and the snippet for a page. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { sdkKeys } from "./api.js";
import { many } from "./format.js";
import { Snippet } from "./snippet.js";
import { useAdmin, useConsole, useLink, useLoad } from "./state.js";
import { AdminNote, Button, Card, Choice, type Column, Confirm, Copy, Dialog, Field, Secret, Show, Table, Time } from "./ui.js";
import type { Key } from "./wire.js";

type Open = { is: "issue"; proxy: boolean } | { is: "revoke" | "origins" | "snippet"; key: Key } | { is: "secret"; secret: string; key: Key } | { is: "browsers" } | { is: "counted"; counted: Counted };
/** Keys of browsers that first signed since then. */
interface Counted { from: string; visitors: number; keys: number }

const ENVIRONMENTS = ["production", "staging", "development"];
const PLATFORMS = ["web", "ios", "android"];
const isProxy = (key: Key) => key.kind === undefined;
const lines = (values: FormData, name: string) => String(values.get(name) ?? "").split(/[\n,]+/).map((line) => line.trim()).filter(Boolean);

export function Keys() {
  const { api } = useConsole();
  const isAdmin = useAdmin();
  const [open, setOpen] = useState<Open>();
  const sdk = useLoad(async () => (await sdkKeys(api)).reverse(), []);
  const proxy = useLoad(async () => (isAdmin ? (await api.manage<{ credentials: Key[] }>("GET", "proxy-credentials")).credentials.reverse() : []), [isAdmin]);
  const done = (next?: Open) => {
    setOpen(next);
    sdk.reload();
    proxy.reload();
  };
  return (
    <>
      <Card title="SDK keys" actions={<Button developer onClick={() => setOpen({ is: "issue", proxy: false })}>Issue a key</Button>}>
        <p class="quiet">A public key goes into pages and apps, and works from its origins and platforms only. A secret key stays on your servers.</p>
        <Show of={sdk}>{(rows) => <KeyTable name="SDK keys" rows={rows} onOpen={setOpen} empty="No key yet. Issue a public key to identify visitors of a page." />}</Show>
      </Card>
      <Card title="Proxy keys" actions={<Button admin onClick={() => setOpen({ is: "issue", proxy: true })}>Issue a proxy key</Button>}>
        <p class="quiet">For your reverse proxy that forwards visitors' requests.</p>
        <AdminNote what="Seeing and changing proxy keys" />
        {isAdmin && <Show of={proxy}>{(rows) => <KeyTable name="Proxy keys" rows={rows} onOpen={setOpen} empty="No proxy key." />}</Show>}
      </Card>
      <Card title="Keys of browsers" actions={<Button admin onClick={() => setOpen({ is: "browsers" })}>Revoke</Button>}>
        <p class="quiet">Each browser signs its reports with a key of its own. If a malicious script has run on your pages, revoke the keys that were first seen since then. Revoked keys prove nothing, and their browsers make new ones.</p>
      </Card>
      {open && <Opened open={open} onClose={() => done()} onDone={done} />}
    </>
  );
}

function KeyTable({ name, rows, onOpen, empty }: { name: string; rows: Key[]; onOpen: (open: Open) => void; empty: string }) {
  const link = useLink();
  const columns: Column<Key>[] = [
    { head: "Name", cell: (key) => <><strong>{key.name}</strong><br /><code class="quiet">{key.public_key ?? `${key.prefix}…${key.last4}`}</code></> },
    { head: "Kind", cell: (key) => [key.kind ?? "proxy", key.environment].join(", ") },
    { head: "Works from", cell: (key) => (key.kind === "public" ? [...(key.allowed_origins ?? []), ...(key.platforms ?? []).filter((one) => one !== "web")].join(", ") || (key.environment === "development" ? "localhost" : "nowhere: add an origin") : "servers") },
    { head: "Last used", cell: (key) => <Time at={key.last_used_at} /> },
    { head: "Status", cell: (key) => <Status of={key} /> },
    {
      head: "Actions",
      cell: (key) => key.status === "active" && (
        <div class="buttons">
          {key.kind === "public" && <Button kind="small" name={`Snippet of ${key.name}`} onClick={() => onOpen({ is: "snippet", key })}>Snippet</Button>}
          {key.kind === "public" && <Button developer kind="small" name={`Origins of ${key.name}`} onClick={() => onOpen({ is: "origins", key })}>Origins</Button>}
          {!isProxy(key) && <a class="button small" href={link("weights", "", { key_id: key.id })} aria-label={`Weights of ${key.name}`}>Weights</a>}
          <Button developer admin={isProxy(key)} kind="small danger" name={`Revoke ${key.name}`} onClick={() => onOpen({ is: "revoke", key })}>Revoke</Button>
        </div>
      ),
    },
  ];
  return <Table name={name} columns={columns} rows={rows} keyOf={(key) => key.id} rowClass={(key) => (key.status === "active" ? "" : "quiet")} empty={<p>{empty}</p>} />;
}

/** The service lists a key as active until it is revoked; one that has expired is refused as well. */
function Status({ of: { status, expires_at: until } }: { of: Key }) {
  if (status !== "active") return <span class="badge">{status}</span>;
  if (until === null) return <>active</>;
  return Date.parse(until) > Date.now() ? <>active until <Time at={until} /></> : <><span class="badge high">expired</span> <Time at={until} /></>;
}

function Opened({ open, onClose, onDone }: { open: Open; onClose: () => void; onDone: (next?: Open) => void }) {
  const { api, notify } = useConsole();
  switch (open.is) {
    case "issue":
      return <Issue proxy={open.proxy} onClose={onClose} onIssued={(key, secret) => onDone(key.kind === "public" ? { is: "snippet", key: { ...key, public_key: secret } } : { is: "secret", key, secret })} />;
    case "secret":
      return <Secret title={`The key ${open.key.name}`} secret={open.secret} onClose={onClose} />;
    case "snippet": {
      const { name, prefix, last4, public_key: whole } = open.key;
      return (
        <Dialog title={`The key ${name}`} onClose={onClose}>
          {whole
            ? <p class="secret"><code>{whole}</code> <Copy text={whole} what="the key" /></p>
            : <p>Put the key in place of <code>{prefix}…{last4}</code>: the version that issued it kept no more.</p>}
          <Snippet apiKey={whole ?? `${prefix}_…${last4}`} />
        </Dialog>
      );
    }
    case "origins":
      return (
        <Dialog title={`Origins of ${open.key.name}`} submit="Save" onClose={onClose} onSubmit={async (values) => {
          const { id, allowed_origins: known = [] } = open.key, wanted = lines(values, "origins");
          const now = (await sdkKeys(api)).find((key) => key.id === id)?.allowed_origins ?? [];
          // What a colleague has added or taken out meanwhile stays so.
          await api.manage("PUT", `sdk-keys/${id}/allowed-origins`, { allowed_origins: [...now.filter((one) => wanted.includes(one) || !known.includes(one)), ...wanted.filter((one) => !known.includes(one))] });
          notify("The origins are saved, and in force.");
          onDone();
        }}>
          <Origins known={open.key.allowed_origins ?? []} />
        </Dialog>
      );
    case "revoke":
      return (
        <Confirm title={`Revoke ${open.key.name}?`} submit="Revoke" onClose={onClose} onConfirm={async () => {
          await api.manage("POST", `${isProxy(open.key) ? "proxy-credentials" : "sdk-keys"}/${open.key.id}/revoke`);
          notify("The key is revoked.");
          onDone();
        }}>
          <p>Pages and servers that use the key stop working at once, for good.</p>
        </Confirm>
      );
    case "browsers":
      return (
        <Dialog title="Keys of browsers" submit="Count" onClose={onClose} onSubmit={async (values) => {
          const from = new Date(String(values.get("from"))).toISOString();
          onDone({ is: "counted", counted: await api.manage<Counted>("GET", `browser-keys?from=${from}`) });
        }}>
          <Field label="First signed since"><input type="datetime-local" name="from" required /></Field>
        </Dialog>
      );
    case "counted": {
      const { from, visitors, keys } = open.counted;
      return (
        <Confirm title={`Revoke ${many(keys, "key")} of ${many(visitors, "visitor")}?`} submit="Revoke" onClose={onClose} onConfirm={async () => {
          await api.manage("POST", "browser-keys/revoke", { from });
          notify("The keys are revoked.");
          onDone();
        }}>
          <p>The visitors stay, but are unproven until their browsers renew the keys.</p>
        </Confirm>
      );
    }
  }
}

const Origins = ({ known }: { known: string[] }) => (
  <Field label="Allowed origins, one a line" hint="Such as https://shop.example, or https://*.shop.example for every host below it.">
    <textarea name="origins" rows={4} spellcheck={false} defaultValue={known.join("\n")} />
  </Field>
);

function Issue({ proxy, onClose, onIssued }: { proxy: boolean; onClose: () => void; onIssued: (key: Key, secret: string) => void }) {
  const { api, environment } = useConsole();
  const [kind, setKind] = useState("public");
  const isPublic = !proxy && kind === "public";
  const issue = async (values: FormData) => {
    const named = { name: String(values.get("name")).trim(), environment: String(values.get("environment")) };
    const until = String(values.get("expires"));
    const expires = until === "" ? {} : { expires_at: new Date(until).toISOString() };
    if (proxy) {
      const { credential, secret } = await api.manage<{ credential: Key; secret: string }>("POST", "proxy-credentials", { ...named, ...expires });
      return onIssued(credential, secret);
    }
    const platforms = values.getAll("platforms"), origins = lines(values, "origins");
    if (isPublic && origins.length === 0 && platforms.every((one) => one === "web") && named.environment !== "development") {
      throw new Error(`Add an allowed origin: without one, no page can use a key of ${named.environment}.`);
    }
    const limits = isPublic ? { platforms, allowed_origins: origins } : {};
    const { key, secret } = await api.manage<{ key: Key; secret: string }>("POST", "sdk-keys", { ...named, ...expires, kind, ...limits });
    onIssued(key, secret);
  };
  return (
    <Dialog title={proxy ? "Issue a proxy key" : "Issue an SDK key"} submit="Issue" onClose={onClose} onSubmit={issue}>
      <Field label="Name"><input name="name" required maxLength={100} autocomplete="off" /></Field>
      {!proxy && <Field label="Kind"><Choice value={kind} options={[["public", "public: for pages and apps"], ["secret", "secret: for servers"]]} onPick={setKind} /></Field>}
      <Field label="Environment"><Choice name="environment" value={environment} options={ENVIRONMENTS} /></Field>
      {isPublic && (
        <fieldset><legend>Platforms</legend>
          {PLATFORMS.map((one) => <label key={one}><input type="checkbox" name="platforms" value={one} defaultChecked={one === "web"} /> {one}</label>)}
        </fieldset>
      )}
      {isPublic && <Origins known={[]} />}
      <Field label="Expires" hint="Empty: never."><input type="datetime-local" name="expires" /></Field>
    </Dialog>
  );
}
