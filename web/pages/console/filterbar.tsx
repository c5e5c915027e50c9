/** Filters of a list, kept in the address so that a view can be shared. */
/** @jsxImportSource preact */
import { useLayoutEffect, useState } from "preact/hooks";
import { DECISIONS, instantOf, KEPT, KINDS, LABELS, LEVELS, tidy, WINDOW_NAMES } from "./filters.js";
import { words } from "./format.js";
import { useConsole, useLink, useLoad, useQuery } from "./state.js";
import { Button, Choice, type Content, Field } from "./ui.js";
import type { Revision } from "./wire.js";

const TITLES: Record<string, string> = { ip_address: "Address", account_id: "Account", group: "Signal group", asn: "Network (AS)", min_accounts: "Accounts, at least", min_visitors: "Visitors, at least", network: "Address or network", q: "Id begins with" };
const HINTS: Record<string, string> = { country: "GB", visitor: "20 letters and digits", asn: "20712", action: "log_in", network: "95.194.0.0/16" };

/** The form around filters: what it changes stands in the address at once. */
export function Filters({ children, clear, more }: { children: Content; clear: boolean; more?: Content }) {
  const { place: { screen, id } } = useConsole();
  const link = useLink();
  return (
    <form class="filters" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      {children}
      {clear && <a class="clear" href={link(screen, id)}>Clear filters</a>}
      {more}
    </form>
  );
}

/**
 * A field of a filter: its value stands in the address once it was entered. Until then it is kept here, whatever the screen draws
 * meanwhile.
 */
export function Entry({ value, onEnter, ...rest }: {
  value: string;
  onEnter: (text: string) => void;
  type?: "datetime-local";
  placeholder?: string | undefined;
  maxLength?: number;
  class?: string;
}) {
  const [text, setText] = useState(value);
  useLayoutEffect(() => setText(value), [value]);
  return <input {...rest} value={text} autocomplete="off" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} onChange={(event) => onEnter(event.currentTarget.value)} />;
}

/** The window: one of these lengths, or between two times. `preset` is what an address without one means. */
export function WindowFilter({ names, preset }: { names: Record<string, string>; preset: string }) {
  const { place: { query } } = useConsole();
  const change = useQuery();
  const shown = query.window ?? preset;
  return (
    <>
      <Field label="Time">
        <Choice value={shown} options={[...Object.entries(names), ["between", "Between …"]]} onPick={(window) => change({ window: window === preset ? undefined : window, from: undefined, to: undefined })} />
      </Field>
      {shown === "between" && ["from", "to"].map((name) => (
        <Field key={name} label={name === "from" ? "From" : "Until"}>
          <Entry type="datetime-local" value={local(query[name])} onEnter={(text) => isEntered(text) && change({ [name]: instant(text) })} />
        </Field>
      ))}
    </>
  );
}

/** The rule that a link asks for, by its name; of one that was removed lately too. */
function OfRule({ id, isShadow }: { id: string; isShadow: boolean }) {
  const { api, environment } = useConsole();
  const change = useQuery();
  const audience = environment === "production" ? "live" : "test";
  const { value } = useLoad((signal) => api.get<{ revisions: Revision[] }>("rules/history", { environment: audience }, signal), [audience]);
  const name = value?.revisions.flatMap(({ rules }) => rules).find((rule) => rule.id === id)?.name;
  return (
    <p class="chip" role="group" aria-label="Rule">
      <span>{isShadow ? "Matched in shadow mode by" : "Decided by"} <strong>{name ?? id}</strong></span>
      <Button kind="small" onClick={() => change({ shadow: isShadow ? undefined : "true" })}>{isShadow ? "Show what it decided" : "Show its shadow matches"}</Button>
      <Button kind="small" name="Clear the rule" onClick={() => change({ rule: undefined, shadow: undefined })}>Clear</Button>
    </p>
  );
}

/** If there are more filters than these, all but the first ones are folded up. On a phone the list is what one came for. */
const MAX_AT_ONCE = 7;
const MAX_ON_PHONE = 2;

/** Filters by these names; of those that are `single`, one at a time. */
export function FilterBar({ names, windowed, single, children, labels = {} }: { names: readonly string[]; windowed?: boolean; single?: boolean; children?: Content; labels?: Record<string, string> }) {
  const { place: { query }, texts } = useConsole();
  const changed = useQuery();
  const change = (changes: Record<string, string | undefined>) =>
    changed(single ? { ...Object.fromEntries(names.map((name) => [name, undefined])), ...changes } : changes);
  const most = matchMedia("(max-width: 48rem)").matches ? MAX_ON_PHONE : MAX_AT_ONCE;
  const first = names.length > most ? names.slice(0, most - 1) : names;
  const rest = names.slice(first.length);
  const options: Record<string, string[]> = { level: LEVELS, decision: DECISIONS, label: LABELS, kind: KINDS, signal: Object.keys(texts.signals).sort(), group: [...new Set(Object.values(texts.signals).map(({ group }) => group))].sort() };
  const one = (name: string) => (
    <Field key={name} label={labels[name] ?? TITLES[name] ?? words(name).replace(/^./, (letter) => letter.toUpperCase())}>
      {options[name]
        ? <Choice value={query[name] ?? ""} options={[["", "any"], ...options[name]!.map((value): [string, string] => [value, name === "signal" ? value : name === "group" ? `any ${words(value)}` : words(value)])]} onPick={(value) => change({ [name]: value })} />
        : <Entry value={query[name] ?? ""} placeholder={HINTS[name]} maxLength={1024} class={name} onEnter={(text) => change({ [name]: tidy(name, text) })} />}
    </Field>
  );
  return (
    <Filters
      clear={[...KEPT, ...names, "window"].some((name) => query[name] !== undefined)}
      more={rest.length > 0 && <details class="more" open={rest.some((name) => query[name] !== undefined)}><summary>More filters</summary><div class="filters">{rest.map(one)}</div></details>}
    >
      {windowed && <WindowFilter names={WINDOW_NAMES} preset="24h" />}
      {first.map(one)}
      {children}
      {query.rule && <OfRule id={query.rule} isShadow={query.shadow === "true"} />}
    </Filters>
  );
}

/** The form that the browser's field for a time takes: local, to the minute. */
function local(at: string | undefined): string {
  const time = instantOf(at);
  if (time === undefined) return "";
  return new Date(time.getTime() - 60_000 * time.getTimezoneOffset()).toISOString().slice(0, 16);
}

/** Browsers tell of every digit: the year 2026 is 2, 20 and 202 on its way. */
const isEntered = (text: string): boolean => text === "" || text >= "1970";

const instant = (text: string): string => (text === "" ? "" : new Date(text).toISOString());
