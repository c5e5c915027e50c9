/** Filters of a list, kept in the address so that a view can be shared. */
/** @jsxImportSource preact */
import { useLayoutEffect, useState } from "preact/hooks";
import { FILTERS, instantOf, KINDS, LEVELS, tidy, WINDOW_NAMES } from "./filters.js";
import { words } from "./format.js";
import { useConsole, useLink, useQuery } from "./state.js";
import { Choice, type Content, Field } from "./ui.js";

const LABELS: Record<string, string> = { ip_address: "Address", visitor: "Visitor", tag: "Tag", country: "Country" };
const HINTS: Record<string, string> = { country: "GB", visitor: "20 letters and digits" };

/** The form around filters: what it changes stands in the address at once. */
export function Filters({ children, clear }: { children: Content; clear: boolean }) {
  const { place: { screen } } = useConsole();
  const link = useLink();
  return (
    <form class="filters" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      {children}
      {clear && <a class="clear" href={link(screen)}>Clear filters</a>}
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

/** Filters by these names; of those that are `single`, one at a time. */
export function FilterBar({ names, windowed, single }: { names: readonly string[]; windowed?: boolean; single?: boolean }) {
  const { place: { query }, texts } = useConsole();
  const changed = useQuery();
  const change = (changes: Record<string, string | undefined>) =>
    changed(single ? { ...Object.fromEntries(names.map((name) => [name, undefined])), ...changes } : changes);
  const options: Record<string, string[]> = { level: LEVELS, kind: KINDS, signal: Object.keys(texts.signals).sort() };
  return (
    <Filters clear={[...FILTERS, "window"].some((name) => query[name] !== undefined)}>
      {windowed && <WindowFilter names={WINDOW_NAMES} preset="24h" />}
      {names.map((name) => (
        <Field key={name} label={LABELS[name] ?? words(name).replace(/^./, (letter) => letter.toUpperCase())}>
          {options[name]
            ? <Choice value={query[name] ?? ""} options={[["", "any"], ...options[name]!.map((one): [string, string] => [one, name === "signal" ? one : words(one)])]} onPick={(value) => change({ [name]: value })} />
            : <Entry value={query[name] ?? ""} placeholder={HINTS[name]} maxLength={1024} class={name} onEnter={(text) => change({ [name]: tidy(name, text) })} />}
        </Field>
      ))}
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
