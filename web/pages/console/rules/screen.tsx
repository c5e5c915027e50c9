/** Rules: an ordered list, an editor, what a change would do before it is saved, and every revision. */
/** @jsxImportSource preact */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api.js";
import { matchesOf } from "../filters.js";
import { count, literal, many } from "../format.js";
import { audienceOf, useAction, useAdmin, useAnswer, useConsole, useLink, useLoad, useMayJudge, useQuery } from "../state.js";
import { Button, Card, Choice, Confirm, Decided, Dialog, Field, Problem, Show } from "../ui.js";
import type { Language, Proposal, Rule, RuleMode, Ruleset, RulesPreview } from "../wire.js";
import { ConditionField, type Fault } from "./condition.js";
import { conditionErrors, differences } from "./diff.js";
import { History } from "./history.js";
import { Effect, Warnings } from "./effect.js";
import { Proposals } from "./proposals.js";

type Draft = Rule & { counts?: Ruleset["rules"][number]["counts"] };
const AUDIENCES: [string, string][] = [["live", "production"], ["test", "staging and development"]];
const MODES: [string, string][] = [["active", "active: it decides"], ["shadow", "shadow: counted, decides nothing"], ["off", "off"]];
const CHECK_MS = 600;
/** What is not saved, by organization and audience: it stays while somebody looks at an example. */
const drafts = new Map<string, { revision: number; rules: Draft[]; proposal?: string | undefined }>();

/** Whether something else would decide, which is for admins to save. */
export const decidesOtherwise = (before: Rule[], after: Rule[]): boolean => {
  const deciding = (rules: Rule[]) => JSON.stringify(rules.filter(({ mode }) => mode === "active").map(bare));
  return deciding(before) !== deciding(after);
};

export function Rules() {
  const { environment, session, place: { query } } = useConsole();
  const change = useQuery();
  const { role } = session;
  const audience = query.rules === "live" || query.rules === "test" ? query.rules : audienceOf(environment);
  return (
    <>
      <form class="filters" aria-label="Which rules" onSubmit={(event) => event.preventDefault()}>
        <Field label="Rules for"><Choice value={audience} options={AUDIENCES} onPick={(one) => change({ rules: one })} /></Field>
      </form>
      {role !== "admin" && <p class="note">Your role is {role}. {role === "viewer" ? "You may preview rules, but not save them." : "You may save rules in the modes shadow and off. Propose changes of active rules to an admin."}</p>}
      <Of key={audience} audience={audience} />
    </>
  );
}

/** The rules of one audience. While they are loaded, those of the other are not shown: they would be edited, and saved, as these. */
function Of({ audience }: { audience: string }) {
  const { api } = useConsole();
  const loaded = useLoad(() => api.manage<Ruleset>("GET", "rules", undefined, { environment: audience }), []);
  const language = useLoad((signal) => api.get<Language>("rules/language", {}, signal), []);
  const proposals = useLoad(async () => (await api.manage<{ proposals: Proposal[] }>("GET", "rule-proposals", undefined, { environment: audience })).proposals, []);
  const [round, setRound] = useState(0);
  const [taking, setTaking] = useState<Proposal>();
  const own = `${api.organization} ${audience}`;
  const offer = (saved: Ruleset, proposal: Proposal) => {
    const draft = drafts.get(own);
    if (draft && differences(saved.rules, draft.rules).length > 0) setTaking(proposal);
    else take(saved, proposal);
  };
  const take = (saved: Ruleset, proposal: Proposal) => {
    setTaking(undefined);
    const known = new Set(saved.rules.map(({ id }) => id));
    drafts.set(own, { revision: saved.revision, rules: proposal.rules.map(({ id, ...rest }) => (id && known.has(id) ? { id, ...rest } : rest)), proposal: proposal.id });
    setRound(round + 1);
  };
  const show = (next: Ruleset) => {
    drafts.delete(own);
    loaded.set(next);
    setRound(round + 1);
    proposals.reload();
  };
  return (
    <Show of={loaded}>{(ruleset) => <Show of={language}>{(words) => (
      <>
        <Problem error={proposals.error} retry={proposals.reload} />
        <Proposals audience={audience} saved={ruleset} proposals={proposals.value ?? []} onTake={(one) => offer(ruleset, one)} onGone={proposals.reload} />
        {taking && <Confirm title="Load the proposal?" submit="Load it" onClose={() => setTaking(undefined)} onConfirm={async () => take(ruleset, taking)}><p>It replaces your unsaved changes.</p></Confirm>}
        <Editor key={`${ruleset.revision} ${round}`} audience={audience} saved={ruleset} language={words} onSaved={show} onReload={loaded.reload} onProposed={proposals.reload} />
        <History key={`history ${ruleset.revision}`} audience={audience} saved={ruleset} onSaved={show} />
      </>
    )}</Show>}</Show>
  );
}

const bare = ({ id, name, condition, action, mode, note }: Draft): Rule => ({ ...(id && { id }), name, condition, action, mode, note });

function Editor({ audience, saved, language, onSaved, onReload, onProposed }: {
  audience: string;
  saved: Ruleset;
  language: Language;
  onSaved: (next: Ruleset) => void;
  onReload: () => void;
  onProposed: () => void;
}) {
  const { api, notify } = useConsole();
  const isAdmin = useAdmin(), mayJudge = useMayJudge();
  const own = `${api.organization} ${audience}`;
  const kept = drafts.get(own);
  const [rules, show] = useState<Draft[]>(kept?.revision === saved.revision ? kept.rules : saved.rules);
  const [edited, setEdited] = useState<number>();
  const [removing, setRemoving] = useState<number>();
  const [faults, setFaults] = useState(new Map<number, Fault>());
  const [isProposing, setProposing] = useState(false);
  const changes = differences(saved.rules, rules);
  const isProposed = mayJudge && !isAdmin && decidesOtherwise(saved.rules, rules);
  const set = (next: Draft[], proposal = drafts.get(own)?.proposal) => {
    drafts.set(own, { revision: saved.revision, rules: next, proposal });
    show(next);
    setFaults(new Map());
  };
  const noting = async <T,>(act: () => Promise<T>): Promise<T> => {
    try {
      return await act();
    } catch (error) {
      if (error instanceof ApiError) setFaults(conditionErrors(error.message));
      throw error;
    }
  };
  const query = { environment: audience };
  const sent = { rules: rules.map(bare) };
  const look = useAnswer(sent, () => noting(() => api.manage<RulesPreview>("POST", "rules/preview", sent, query)));
  const drop = () => {
    set(saved.rules);
    drafts.delete(own);
  };
  const save = useAction(() => noting(async () => {
    const proposal = drafts.get(own)?.proposal;
    const next = await api.manage<Ruleset>("PUT", "rules", { revision: saved.revision, ...sent }, query);
    // Somebody else may have dismissed it meanwhile: the rules are saved.
    if (proposal) await api.manage("DELETE", `rule-proposals/${proposal}`, undefined, query).catch(() => undefined);
    onSaved(next);
    notify("The rules are saved, and in force from the next request on.");
  }));
  const move = (at: number, by: number) => {
    const next = [...rules];
    const [rule] = next.splice(at, 1);
    next.splice(at + by, 0, rule!);
    set(next);
  };
  const isConflict = save.error instanceof ApiError && save.error.code === "revision_conflict";
  // What is edited while it is saved would be neither saved nor kept.
  return (
    <div style={{ display: "contents" }} inert={save.busy}>
      <div class="bottom-bar">
        <p class="buttons">
          <span role="status">{changes.length === 0 ? `Revision ${saved.revision}, no change yet.` : many(changes.length, "unsaved change")}</span>
          <Button onClick={() => { set([...rules, { name: "", condition: "", action: "review", mode: "shadow", note: "" }]); setEdited(rules.length); }}>Add a rule</Button>
          <Button kind="primary" busy={look.busy} disabled={changes.length === 0} onClick={() => look.run()}>Preview</Button>
          {isProposed
            ? <Button kind="primary" onClick={() => setProposing(true)}>Propose …</Button>
            : <Button judge kind="primary" busy={save.busy} disabled={changes.length === 0} onClick={() => save.run()}>Save</Button>}
          <Button disabled={changes.length === 0} onClick={drop}>Discard</Button>
        </p>
        {isConflict
          ? <div class="problem" role="alert"><p>Somebody else has saved these rules since you opened them. Load theirs and repeat your change: it will be lost.</p><button type="button" onClick={onReload}>Load theirs</button></div>
          : <Problem error={save.error ?? look.error} />}
      </div>
      {isProposing && (
        <Dialog title="Propose these rules to an admin" submit="Propose" onClose={() => setProposing(false)} onSubmit={async (form) => {
          await noting(() => api.manage("POST", "rule-proposals", { revision: saved.revision, ...sent, note: String(form.get("note")).trim() }, query));
          setProposing(false);
          drop();
          onProposed();
          notify("Proposed. Admins see it at the top of this screen. The rules in force are unchanged.");
        }}>
          <Field label="Why" hint="For the admins who decide."><input name="note" required maxLength={500} autocomplete="off" /></Field>
        </Dialog>
      )}
      {changes.length === 0 && <Warnings of={saved} />}
      {look.value && <Effect preview={look.value} audience={audience} />}
      <Card title="Rules in order: the first active match decides">
        <ol class="rules">
          {rules.map((rule, at) => (
            <li key={rule.id ?? `new ${at}`} class={rule.mode}>
              <div class="head">
                <h3><bdi>{rule.name || "A new rule"}</bdi> <Decided decision={{ action: rule.action }} /> {rule.mode !== "active" && <span class="badge">{rule.mode}</span>}</h3>
                <span class="buttons">
                  <Button kind="small" disabled={at === 0} name={`Move ${rule.name} up`} onClick={() => move(at, -1)}>Up</Button>
                  <Button kind="small" disabled={at === rules.length - 1} name={`Move ${rule.name} down`} onClick={() => move(at, 1)}>Down</Button>
                  <Button kind="small" name={`Edit ${rule.name}`} onClick={() => setEdited(at)}>Edit</Button>
                  <Button kind="small danger" name={`Remove ${rule.name}`} onClick={() => setRemoving(at)}>Remove</Button>
                </span>
              </div>
              <pre class="condition" tabIndex={0}><code>{literal(rule.condition)}</code></pre>
              {rule.note && <p class="quiet">{rule.note}</p>}
              <p class="quiet">{rule.counts
                ? <><Matched rule={rule} counts={rule.counts} audience={audience} mode={saved.rules.find(({ id }) => id === rule.id)?.mode} />{rule.counts.errors_24h > 0 && <strong>; its evaluation failed for {many(rule.counts.errors_24h, "event")} in 24 hours</strong>}</>
                : "Not saved yet."}</p>
              {faults.get(at) && <p class="fault">Line {faults.get(at)!.line}, column {faults.get(at)!.column}: {faults.get(at)!.text}</p>}
            </li>
          ))}
        </ol>
        {rules.length === 0 && <p class="empty">No rules: no identification gets a decision.</p>}
      </Card>
      {edited !== undefined && rules[edited] && (
        <EditRule rule={rules[edited]} others={rules.filter((_, at) => at !== edited)} at={edited} all={rules} audience={audience} language={language} fault={faults.get(edited)}
          onClose={() => { if (!rules[edited]!.condition) set(rules.filter((_, at) => at !== edited)); setEdited(undefined); }}
          onDone={(rule) => { set(rules.map((one, at) => (at === edited ? rule : one))); setEdited(undefined); }} />
      )}
      {removing !== undefined && rules[removing] && (
        <Confirm title={`Remove ${rules[removing].name}?`} submit="Remove" onClose={() => setRemoving(undefined)} onConfirm={async () => { set(rules.filter((_, at) => at !== removing)); setRemoving(undefined); }}>
          <p>It is removed when you save. To keep it without effect, set its mode to off or shadow.</p>
        </Confirm>
      )}
    </div>
  );
}

/** How many events a rule matched, each number with its list: of an environment, while counts of `test` are of two. */
function Matched({ rule, counts, audience, mode }: { rule: Draft; counts: NonNullable<Draft["counts"]>; audience: string; mode: RuleMode | undefined }) {
  const link = useLink();
  const to = (text: string, window: string | undefined, environment: string) =>
    <a href={link("events", "", { environment, window, ...matchesOf(rule.id, mode) })} aria-label={`${text}: events that ${rule.name} matched in ${window ? "30 days" : "24 hours"}`}>{text}</a>;
  const number = (of: number, window?: string) => (audience === "live" && of > 0 ? to(count(of), window, "production") : count(of));
  return (
    <>
      Matched {number(counts.matched_24h)} in 24 hours, {number(counts.matched_30d, "30d")} in 30 days
      {audience === "test" && counts.matched_30d > 0 && <> ({to("staging", "30d", "staging")}, {to("development", "30d", "development")})</>}
    </>
  );
}

/** One rule in a dialog. Its condition is checked by the service while it is written, so that an error is where it is. */
function EditRule({ rule, others, at, all, audience, language, fault: given, onClose, onDone }: {
  rule: Draft;
  others: Draft[];
  at: number;
  all: Draft[];
  audience: string;
  language: Language;
  fault: Fault | undefined;
  onClose: () => void;
  onDone: (rule: Draft) => void;
}) {
  const { api } = useConsole();
  const [draft, setDraft] = useState(rule);
  const [fault, setFault] = useState(given);
  const asked = useRef(0);
  /** What the service says of the condition; nothing where it is good. */
  const check = async (one: Draft): Promise<Fault | undefined> => {
    const round = (asked.current += 1);
    let found: Fault | undefined;
    try {
      // The others stay out of it: their names and lists are theirs.
      await api.call("POST", "rules/check", { query: { environment: audience }, body: { rules: [{ ...bare(one), id: undefined, name: one.name.trim() || "new" }] } });
    } catch (error) {
      found = error instanceof ApiError ? conditionErrors(error.message).get(0) : undefined;
      if (!found && !(error instanceof ApiError && error.details.length === 0)) throw error;
    }
    if (round === asked.current) setFault(found);
    return found;
  };
  useEffect(() => {
    if (draft.condition.trim() === "") return undefined;
    const timer = setTimeout(() => void check(draft).catch(() => undefined), CHECK_MS);
    return () => clearTimeout(timer);
  }, [draft.condition]);
  const done = async () => {
    const name = draft.name.trim();
    if (others.some((one) => one.name === name)) throw new Error("Another rule has this name. Choose a different one.");
    const found = await check(draft);
    if (found) throw new Error(`The condition cannot be used yet: line ${found.line}, column ${found.column}.`);
    onDone({ ...draft, name });
  };
  return (
    <Dialog title={rule.id || rule.name ? `Edit ${rule.name}` : "Add a rule"} submit="Done" hasDraft={JSON.stringify(draft) !== JSON.stringify(rule)} onClose={onClose} onSubmit={done}>
      <p class="quiet">Place {at + 1} of {all.length}. Changes take effect when you save.</p>
      <Field label="Name"><input name="name" required maxLength={80} autocomplete="off" value={draft.name} onInput={(event) => setDraft({ ...draft, name: event.currentTarget.value })} /></Field>
      <ConditionField value={draft.condition} fault={fault} language={language} onEdit={(condition) => setDraft({ ...draft, condition })} />
      <Field label="Decision"><Choice name="action" value={draft.action} options={["allow", "review", "challenge", "block"]} onPick={(action) => setDraft({ ...draft, action })} /></Field>
      <Field label="Mode"><Choice name="mode" value={draft.mode} options={MODES} onPick={(mode) => setDraft({ ...draft, mode: mode as RuleMode })} /></Field>
      <Field label="Note"><input name="note" maxLength={500} autocomplete="off" value={draft.note} onInput={(event) => setDraft({ ...draft, note: event.currentTarget.value })} /></Field>
    </Dialog>
  );
}
