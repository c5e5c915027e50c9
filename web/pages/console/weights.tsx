/** Weights: what each signal adds to a score, tried on past events before it is saved. */
/** @jsxImportSource preact */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api.js";
import { capital, count, many, share, words } from "./format.js";
import { useAction, useAnswer, useConsole, useLink, useLoad, useQuery } from "./state.js";
import { Suggested } from "./suggestedweights.js";
import { AdminNote, Button, Card, Choice, type Column, Confirm, Field, Problem, Show, Table, Time } from "./ui.js";
import type { Key, PlatformWeights, Preview, RiskWeights, SignalInfo } from "./wire.js";

const PLATFORMS = ["web", "ios", "android"];
const MODES = ["vpn_weights_mode", "residential_proxy_weights_mode"] as const;

/** What differs from what is saved. */
interface Draft {
  suspect_threshold?: number;
  weights: Record<string, number>;
  vpn_weights_mode?: string;
  residential_proxy_weights_mode?: string;
}

const EMPTY: Draft = { weights: {} };
/** What is not saved, by organization and path: it stays while somebody looks at an example of the preview. */
const drafts = new Map<string, Draft>();

/** The draft without what is saved as well. */
function differing(draft: Draft, saved: PlatformWeights): Draft {
  const { weights, ...rest } = draft;
  const changed = Object.entries(rest).filter(([name, value]) => value !== saved[name as keyof PlatformWeights]);
  return { ...Object.fromEntries(changed), weights: Object.fromEntries(Object.entries(weights).filter(([name, value]) => value !== saved.weights[name])) };
}

const size = ({ weights, ...rest }: Draft): number => Object.keys(weights).length + Object.keys(rest).length;

export function Weights() {
  const { api, place: { query } } = useConsole();
  const change = useQuery();
  const platform = PLATFORMS.includes(query.platform ?? "") ? query.platform! : "web";
  const key = query.key_id;
  const path = key ? `sdk-keys/${encodeURIComponent(key)}/risk-weights` : "risk-weights";
  const keys = useLoad(async () => (await api.manage<{ keys: Key[] }>("GET", "sdk-keys")).keys.filter((one) => one.status === "active"), []);
  return (
    <>
      <form class="filters" aria-label="Which weights" onSubmit={(event) => event.preventDefault()}>
        <Field label="Platform"><Choice value={platform} options={PLATFORMS} onPick={(one) => change({ platform: one })} /></Field>
        <Field label="For">
          <Choice value={key ?? ""} options={[["", "the organization"], ...(keys.value ?? []).map((one): [string, string] => [one.id, `the key ${one.name} …${one.last4}`])]} onPick={(one) => change({ key_id: one })} />
        </Field>
      </form>
      <AdminNote what="You may preview changes; saving them" />
      <Of key={path} path={path} platform={platform} />
    </>
  );
}

/** The weights of the organization, or of one key. While they are loaded, those of another are not shown: they would be saved as these. */
function Of({ path, platform }: { path: string; platform: string }) {
  const { api } = useConsole();
  const loaded = useLoad(async () => {
    const [weights, { signals }] = await Promise.all([api.manage<RiskWeights>("GET", path), api.manage<{ signals: SignalInfo[] }>("GET", "risk-signals")]);
    return { weights, signals };
  }, []);
  return (
    <Show of={loaded}>{({ weights, signals }) => {
      const saved = weights.platforms.find((one) => one.platform === platform);
      return saved && <Editor key={platform} path={`${path}/${platform}`} saved={saved} most={weights.max_weight} signals={signals} onSaved={(next) => loaded.set({ weights: next, signals })} onReload={loaded.reload} />;
    }}</Show>
  );
}

function Editor({ path, saved, most, signals, onSaved, onReload }: {
  path: string;
  saved: PlatformWeights;
  most: number;
  signals: SignalInfo[];
  onSaved: (weights: RiskWeights) => void;
  onReload: () => void;
}) {
  const { api, environment, notify, place: { query } } = useConsole();
  const own = `${api.organization} ${path}`;
  const [draft, show] = useState(drafts.get(own) ?? EMPTY);
  const setDraft = (next: Draft) => {
    drafts.set(own, next);
    show(next);
  };
  const form = useRef<HTMLFormElement>(null);
  const [asks, setAsks] = useState(false);
  const changes = differing(draft, saved);
  const edit = (next: Partial<Draft>) => setDraft({ ...draft, ...next });
  const asked = { platform: saved.platform, environment, ...(query.key_id && { key_id: query.key_id }), ...changes };
  const look = useAnswer([asked, saved.revision], () => api.call<Preview>("POST", "weights/preview", { body: asked }));
  const save = useAction(async () => {
    onSaved(await api.manage<RiskWeights>("PUT", path, { ...changes, revision: saved.revision }));
    setDraft(EMPTY);
    notify("The weights are saved, and in force from the next identification on.");
  });
  const restore = async () => {
    onSaved(await api.manage<RiskWeights>("DELETE", path));
    setDraft(EMPTY);
    setAsks(false);
    notify("Restored.");
  };
  const isConflict = save.error instanceof ApiError && save.error.code === "revision_conflict";
  const parent = query.key_id ? "those of the organization" : "the defaults";
  const columns: Column<string>[] = [
    { head: "Signal", cell: (name) => <><strong>{name}</strong><br /><span class="quiet">{signals.find((one) => one.name === name)?.description}</span></> },
    { head: "Default", cell: (name) => saved.defaults[name] ?? 0, number: true },
    {
      head: "Weight",
      number: true,
      cell: (name) => (
        <Amount min={0} max={most} aria-label={`Weight of ${name}`} class={name in changes.weights ? "changed" : ""}
          value={draft.weights[name] ?? saved.weights[name] ?? 0}
          onEdit={(value) => edit({ weights: { ...draft.weights, [name]: value } })} />
      ),
    },
  ];
  const groups = [...new Set(saved.signals.map((name) => signals.find((one) => one.name === name)?.group ?? "other"))];
  // What is edited while it is saved would be neither saved nor kept.
  return (
    <form ref={form} onSubmit={(event) => { event.preventDefault(); look.run(); }} inert={save.busy}>
      <p class="summary">
        <span>{saved.stored ? `Revision ${saved.revision}` : `Not customized: ${parent} apply`}</span>
        {saved.updated_at && <span>saved <Time at={saved.updated_at} /></span>}
      </p>
      <Card title="Levels">
        <div class="filters">
          <Field label="Suspicious from" hint={`Very suspicious from ${2 * (draft.suspect_threshold ?? saved.suspect_threshold) || "twice that"}.`}>
            <Amount min={1} max={1000} value={draft.suspect_threshold ?? saved.suspect_threshold} onEdit={(value) => edit({ suspect_threshold: value })} />
          </Field>
          {MODES.map((mode) => (
            <Field key={mode} label={`Weights for ${words(mode.replace("_weights_mode", ""))}`}>
              <Choice value={draft[mode] ?? saved[mode]} options={[["method", "one per method"], ["confidence", "one per confidence"]]} onPick={(one) => edit({ [mode]: one })} />
            </Field>
          ))}
        </div>
      </Card>
      <div class="bottom-bar">
        <p class="buttons">
          <span role="status">{size(changes) === 0 ? "No change yet." : many(size(changes), "unsaved change")}</span>
          <Button kind="primary" busy={look.busy} disabled={size(changes) === 0}>Preview</Button>
          <Button admin kind="primary" busy={save.busy} disabled={size(changes) === 0} onClick={() => form.current?.reportValidity() && save.run()}>Save</Button>
          <Button disabled={size(changes) === 0} onClick={() => setDraft(EMPTY)}>Discard</Button>
          <Button admin kind="danger" disabled={!saved.stored} onClick={() => setAsks(true)}>Restore …</Button>
        </p>
        {isConflict
          ? <div class="problem" role="alert"><p>Somebody else has saved these weights since you opened them. Load theirs: your changes stay on top.</p>
              <button type="button" onClick={() => { save.setError(undefined); onReload(); }}>Load theirs, keep my changes</button></div>
          : <Problem error={save.error ?? look.error} />}
      </div>
      {look.value && <Effect preview={look.value} />}
      {query.key_id
        ? <p class="quiet">Labels suggest weights for the organization, not for one key.</p>
        : <Suggested key={saved.revision} platform={saved.platform} onTry={(weights) => { edit({ weights: { ...draft.weights, ...weights } }); notify("The suggested weights are in the editor. Preview them; nothing is saved."); }} />}
      {groups.map((group) => (
        <Card key={group} title={capital(words(group))}>
          <Table name={`Signals of the group ${words(group)}`} columns={columns} keyOf={(name) => name}
            rows={saved.signals.filter((name) => (signals.find((one) => one.name === name)?.group ?? "other") === group)} />
        </Card>
      ))}
      {asks && <Confirm title="Restore these weights?" submit="Restore" onClose={() => setAsks(false)} onConfirm={restore}><p>The saved weights are deleted, and {parent} apply again.</p></Confirm>}
    </form>
  );
}

/** A field for a number: NaN while what is typed is none, as "-" and "1." are, which stay for what follows. */
function Amount({ value, onEdit, ...rest }: { value: number; onEdit: (value: number) => void; min: number; max: number; class?: string; "aria-label"?: string }) {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (field.current && !Object.is(field.current.valueAsNumber, value)) field.current.value = String(value);
  }, [value]);
  return <input {...rest} type="number" required ref={field} onInput={(event) => onEdit(event.currentTarget.valueAsNumber)} />;
}

const LEVELS = ["low", "medium", "high", "not_scored"] as const;

function Effect({ preview }: { preview: Preview }) {
  const { environment } = useConsole();
  const link = useLink();
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => heading.current?.focus(), [preview]);
  const columns: Column<Preview["examples"][number]>[] = [
    { head: "Event", cell: (row) => <a href={link("events", row.request_id)}><Time at={row.occurred_at} /></a> },
    { head: "Now", cell: ({ before }) => <span class={`badge ${before.level}`}>{before.score} {before.level}</span> },
    { head: "Then", cell: ({ after }) => <span class={`badge ${after.level}`}>{after.score} {after.level}</span> },
    { head: "Because", cell: (row) => row.because.map((one) => `${one.signal} from ${one.before} to ${one.after}`).join(", ") },
  ];
  if (preview.events === 0) return <section class="card"><h2 tabIndex={-1} ref={heading}>Preview</h2><p>There is no event of this platform in {environment} to try the weights on. Choose another environment above.</p></section>;
  return (
    <section class="card preview">
      <h2 tabIndex={-1} ref={heading}>Preview</h2>
      <p><strong>{many(preview.changed, "event")}</strong> of the newest {count(preview.events)} in {environment} would change their level ({share(preview.changed, preview.events)}).</p>
      {preview.compared_without_document > 0 && <p class="quiet">{many(preview.compared_without_document, "event")} without a report: compared by the signals that fired.</p>}
      {!!preview.not_comparable && <p class="quiet">{many(preview.not_comparable, "older event")} left out: neither a report nor signals are stored.</p>}
      <Table name="Events by level" keyOf={(level) => level} rows={LEVELS.filter((level) => (preview.before[level] ?? 0) + (preview.after[level] ?? 0) > 0)} columns={[
        { head: "Level", cell: (level) => words(level) },
        { head: "Now", cell: (level) => count(preview.before[level] ?? 0), number: true },
        { head: "Then", cell: (level) => count(preview.after[level] ?? 0), number: true },
      ]} />
      {preview.moves.length > 0 && <ul>{preview.moves.map((move) => <li>{many(move.count, "event")} from {words(move.from)} to {words(move.to)}</li>)}</ul>}
      {preview.by_signal.length > 0 && <Table name="Signals that count differently" rows={preview.by_signal} keyOf={(row) => row.signal} columns={[
        { head: "Signal", cell: (row) => row.signal },
        { head: "Weight", cell: (row) => `from ${row.before} to ${row.after}` },
        { head: "Events with it", cell: (row) => count(row.count), number: true },
        { head: "Change level", cell: (row) => count(row.changed), number: true },
      ]} />}
      {preview.examples.length > 0 && <><h3>Examples</h3><Table name="Examples" columns={columns} rows={preview.examples} keyOf={(row) => row.request_id} /></>}
    </section>
  );
}
