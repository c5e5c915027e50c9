/** Small parts that the screens are made of. */
/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { colored } from "../parts/identity.js";
import type { Fired, VisitRow } from "../parts/wire.js";
import { ApiError } from "./api.js";
import { capital, count, moment, share, utc, words } from "./format.js";
import { type Loaded, Shared, useAction, useAdmin, useConsole, useDeveloper, useLink, useMayJudge } from "./state.js";

export type Content = ComponentChildren;

/** As a `ref`: it has the focus as soon as it is there, before the next key is pressed. */
export const focus = (element: HTMLElement | null) => element?.focus();

export function Card({ title, children, actions }: { title: string; children: Content; actions?: Content }) {
  return (
    <section class="card">
      <div class="head"><h2>{title}</h2>{actions}</div>
      {children}
    </section>
  );
}

/** What is of this environment, whichever one the address names: links lead to it, and buttons change what it has. */
export const Of = ({ environment, children }: { environment: string; children: Content }) => (
  <Shared.Provider value={{ ...useConsole(), environment }}>{children}</Shared.Provider>
);

/** Local time; UTC on hovering. */
export const Time = ({ at }: { at: string | null | undefined }) =>
  at ? <time dateTime={at} title={utc(at)}>{moment(at)}</time> : <span class="quiet">never</span>;

/** While counts are rebuilt after an upgrade. */
export const Rebuilt = ({ since }: { since: string | undefined }) =>
  since === undefined ? null : <span> Counts are being rebuilt after an upgrade: so far of events since <Time at={since} />.</span>;

export function Copy({ text, label = "Copy", what }: { text: string; label?: string; what?: string }) {
  // Said here, since a dialog hides what is outside of it, also from screen readers.
  const [said, say] = useState("");
  const copy = () =>
    (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(
      () => say("Copied."),
      () => say("The browser allows no copying here: select the text and copy it."),
    );
  return <><button type="button" class="small" onClick={copy} aria-label={what && `Copy ${what}`}>{label}</button> <span class="quiet" role="status">{said}</span></>;
}

/** A long id: monospace, with a button that copies it. */
export const Id = ({ children, what }: { children: string; what: string }) => (
  <span class="copyable"><code>{children}</code> <Copy text={children} what={what} /></span>
);

export function VisitorLink({ id, short }: { id: string; short?: boolean }) {
  const link = useLink();
  return (
    <a class="visitor" style={colored(id)} href={link("visitors", id)} title={id}>
      <span class="dot" aria-hidden="true" />{short ? `${id.slice(0, 8)}…` : id}
    </a>
  );
}

/** Score and level in one badge. */
export function Verdict({ row }: { row: Pick<VisitRow, "suspect_score" | "suspect_level"> }) {
  const { suspect_score: score, suspect_level: level } = row;
  if (score === undefined || score === null) return <span class="badge">not scored</span>;
  return <span class={`badge ${level}`}>{score} {level}</span>;
}

const TONES: Record<string, string> = { allow: "low", review: "medium", challenge: "medium", block: "high", fraud: "high", legitimate: "low" };

/** What a rule decided; the rule on hovering. */
export const Decided = ({ decision }: { decision: { action: string; rule?: string } | undefined }) =>
  decision === undefined ? null : <span class={`badge ${TONES[decision.action] ?? ""}`} title={decision.rule && `Rule ${decision.rule}`}>{decision.action}</span>;

/** What an event turned out to be; the reason on hovering. */
export const LabelBadge = ({ label, reason }: { label: string | null | undefined; reason?: string | null | undefined }) =>
  label ? <span class={`badge ${TONES[label] ?? ""}`} title={reason ? words(reason) : undefined}>{label}</span> : null;

export function AccountLink({ id }: { id: string }) {
  const link = useLink();
  return <a class="tag account" href={link("accounts", id)} title={id}>{id}</a>;
}

/** The first ones of several values that somebody wrote. */
export const Several = ({ of, most }: { of: string[]; most: number }) => (
  <span class="tag">{of.slice(0, most).map((value, at) => <>{at > 0 && " · "}<bdi>{value}</bdi></>)}{of.length > most && " · …"}</span>
);

export const Known = ({ row }: { row: VisitRow & { identifiable?: boolean } }) => (
  <>{row.identifiable === false ? "not identifiable" : row.visitor_is_new ? "new" : `${row.visitor_confidence ?? "?"} %`}</>
);

/** A name that may break behind its underscores, and nowhere else. */
export const Name = ({ of }: { of: string }) => <span class="name">{of.split("_").map((part, place) => place === 0 ? part : <>_<wbr />{part}</>)}</span>;

export const Signals = ({ fired = [] }: { fired?: Fired[] | undefined }) =>
  fired.length === 0 ? <span class="quiet">none</span> : (
    <>
      {fired.slice(0, 3).map(({ signal }, place) => <>{place > 0 && ", "}<Name of={signal} /></>)}
      {fired.length > 3 && ` and ${fired.length - 3} more`}
    </>
  );

export interface Column<T> {
  head: string;
  cell: (row: T) => Content;
  number?: boolean;
  /** The name of the order that its heading asks for. */
  sort?: string;
}

/** Which rows are chosen, by their keys. */
export interface Selection {
  chosen: ReadonlySet<string>;
  choose: (keys: Set<string>) => void;
}

export interface Sorting {
  by: string;
  sort: (by: string) => void;
}

/** The rows that stay chosen: of those that are shown. */
export function useSelection(shown: string[]): Selection {
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
  return { chosen: new Set(shown.filter((key) => chosen.has(key))), choose };
}

/** A table; on a narrow screen each row becomes a card. The roles stay when the style takes them away. */
export function Table<T>({ name, columns, rows, keyOf, rowClass, empty, selection, sorting }: {
  selection?: Selection;
  sorting?: Sorting;
  name: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string;
  rowClass?: (row: T) => string;
  empty?: Content;
}) {
  if (rows.length === 0) return <div class="empty">{empty ?? "Nothing yet."}</div>;
  const chosen = selection?.chosen ?? new Set<string>();
  const toggle = (key: string) => {
    const next = new Set(chosen);
    if (!next.delete(key)) next.add(key);
    selection?.choose(next);
  };
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={name}>
      <table role="table" aria-label={name}>
        <thead role="rowgroup">
          <tr role="row">
            {selection && <th role="columnheader" scope="col" class="choose"><input type="checkbox" aria-label="Select all that are shown" checked={chosen.size === rows.length} onChange={(event) => selection.choose(new Set(event.currentTarget.checked ? rows.map(keyOf) : []))} /></th>}
            {columns.map(({ head, number, sort }) => (
              <th role="columnheader" scope="col" class={number ? "number" : ""} aria-sort={sort && sorting?.by === sort ? "descending" : undefined}>
                {sort && sorting ? <button type="button" class="sort" aria-pressed={sorting.by === sort} onClick={() => sorting.sort(sort)}>{head}</button> : head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row, place) => (
            <tr role="row" key={keyOf(row)} class={rowClass?.(row)}>
              {selection && <td role="cell" data-head="Select" class="choose"><div><input type="checkbox" aria-label={`Select row ${place + 1}`} checked={chosen.has(keyOf(row))} onChange={() => toggle(keyOf(row))} /></div></td>}
              {columns.map(({ head, cell, number }) => <td role="cell" data-head={head} class={number ? "number" : ""}><div>{cell(row)}</div></td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const ISSUES: Record<string, string> = {
  required: "is required",
  wrong_type: "has the wrong type",
  out_of_range: "is out of range",
  too_long: "is too long",
  invalid_url: "must be an https address whose host resolves",
  not_public_address: "must lead to a public address",
  invalid_origin: "must be an origin such as https://shop.example",
  requires_live: "needs an endpoint for production traffic",
  invalid_value: "is not valid",
  invalid_condition: "is not a valid condition",
  // by field
  country: "must be a code of two letters, such as GB",
  ip_address: "must be like 203.0.113.7 or 2001:db8::1",
  network: "must be like 203.0.113.7 or 203.0.113.0/24",
  account_id: "must be an id of an account, without spaces at its ends",
  action: "must be a name such as log_in",
  asn: "must be digits, such as 20712",
  visitor: "must be an id of 20 letters and digits",
  from: "is before the oldest event that is kept, or not before the end",
};

/** Messages for programmers: their details say it all. */
const TECHNICAL = /`details`|^The window,/;
const HEADINGS: Record<string, string> = {
  validation_error: "This cannot be used as it stands:",
  invalid_window: "Choose at most 30 days of those that are kept, the start before the end, and check the filters:",
};

/** What went wrong, and what to do next. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  if (error === undefined) return null;
  const known = error instanceof ApiError ? error : undefined;
  const heading = known && known.details.length > 0 && TECHNICAL.test(known.message) && HEADINGS[known.code];
  return (
    <div class="problem" role="alert">
      <p>{heading || (error instanceof Error ? error.message : String(error))}</p>
      {known && known.details.length > 0 && <ul>{known.details.map(({ field, issue }) => <li>{capital(words(field.replace(/\[(\d+)\]/, (_, at) => ` ${Number(at) + 1}`) || "the request"))} {ISSUES[field] ?? ISSUES[issue] ?? words(issue)}.</li>)}</ul>}
      {known?.status === 500 && <p class="quiet">Request {known.requestId}</p>}
      {retry && <button type="button" onClick={retry}>Try again</button>}
    </div>
  );
}

/** Shows what was loaded, or that it is on its way, or why it is not there. */
export function Show<T>({ of, children }: { of: Loaded<T>; children: (value: T) => Content }) {
  if (of.error !== undefined) return <Problem error={of.error} retry={of.reload} />;
  if (of.value === undefined) return <p class="quiet" role="status">Loading …</p>;
  return <div class={of.busy ? "stale" : ""} aria-busy={of.busy}>{children(of.value)}</div>;
}

/** Bars of plain CSS, longest first, with their counts beside them. */
export function Bars({ rows, of, name, empty = "None in this window." }: {
  rows: { key: string; label: Content; count: number }[];
  of: number;
  name: string;
  empty?: string;
}) {
  const most = Math.max(1, ...rows.map((row) => row.count));
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  return (
    <ul class="bars" aria-label={name}>
      {rows.map((row) => (
        <li key={row.key}>
          <span class="label">{row.label}</span>
          <span class="track" aria-hidden="true">{row.count > 0 && <span class="fill" style={{ width: `${(100 * row.count) / most}%` }} />}</span>
          <span class="number">{count(row.count)} <span class="quiet">{of > 0 && share(row.count, of)}</span></span>
        </li>
      ))}
    </ul>
  );
}

export type Fact = [name: string, value: Content];

export const Facts = ({ rows }: { rows: Fact[] }) => (
  <dl>{rows.map(([name, value]) => value !== undefined && value !== "" && value !== null && <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
);

/** Of a key that is held down on a button the first press counts. */
const once = (event: KeyboardEvent) => {
  if (event.repeat && event.key === "Enter" && event.target instanceof HTMLButtonElement) event.preventDefault();
};

/** A button where nobody is signed in yet. A busy one keeps the focus, so that Enter tries again what has failed, and does nothing until
 * then. A key that is held down presses it once. */
export function Press({ children, onClick, busy, kind = "", disabled, title, name }: {
  children: Content;
  onClick?: () => void;
  busy?: boolean;
  kind?: string;
  disabled?: boolean | undefined;
  title?: string | undefined;
  name?: string;
}) {
  return (
    <button type={onClick ? "button" : "submit"} class={kind} onClick={busy ? (event) => event.preventDefault() : onClick} onKeyDown={once} aria-disabled={busy} disabled={disabled} title={title} aria-label={name}>
      {children}
    </button>
  );
}

/** A button of the console; one that the session's role may not press says why. */
export function Button({ admin, developer, judge, disabled, ...others }: {
  admin?: boolean;
  /** For those who manage keys, webhooks and lists. */
  developer?: boolean;
  /** Not for a viewer. */
  judge?: boolean;
} & Omit<Parameters<typeof Press>[0], "title">) {
  const isAdmin = useAdmin(), isDeveloper = useDeveloper(), mayJudge = useMayJudge();
  const needed = admin && !isAdmin ? "admin" : developer && !isDeveloper ? "developer" : judge && !mayJudge ? "analyst" : undefined;
  return <Press {...others} disabled={disabled || !!needed} title={needed && `Needs the role ${needed}.`} />;
}

/** Says once for a part of a screen what only an admin may do. */
export function AdminNote({ what }: { what: string }) {
  const role = useConsole().session.role;
  return role === "admin" ? null : <p class="note">Your role is {role}. {what} needs the role admin.</p>;
}

export function Field({ label, children, hint }: { label: string; children: Content; hint?: string }) {
  return <label class="field"><span>{label}</span>{children}{hint && <small>{hint}</small>}</label>;
}

export function Choice({ value, options, onPick, name }: {
  value: string;
  options: (string | [value: string, label: string])[];
  onPick?: (value: string) => void;
  name?: string;
}) {
  return (
    <select name={name} value={value} onChange={(event) => onPick?.(event.currentTarget.value)}>
      {options.map((option) => {
        const [own, label] = typeof option === "string" ? [option, words(option)] : option;
        return <option key={own} value={own} selected={own === value}>{label}</option>;
      })}
    </select>
  );
}

/**
 * A modal dialog with a form. Escape and Cancel close it; the focus returns to where it was. One with a draft asks before it is dropped.
 * The focus never leaves it, as it would with a button that is disabled: keys would be those of the screen behind.
 */
export function Dialog({ title, children, onClose: leave, submit, onSubmit, danger, disabled, hasDraft }: {
  title: string;
  children: Content;
  onClose: () => void;
  hasDraft?: boolean;
  submit?: string;
  onSubmit?: (values: FormData) => Promise<unknown>;
  danger?: boolean;
  disabled?: boolean;
}) {
  const place = useRef<HTMLDialogElement>(null);
  // One that is closed meanwhile goes on: what it writes is said in passing.
  const { busy, error, run } = useAction(async (values: FormData) => onSubmit?.(values));
  const [asks, setAsks] = useState(false);
  const onClose = () => (hasDraft ? setAsks(true) : leave());
  // The browser would close it at the second Escape, whatever is said to the first. What is on top has taken its own.
  const key = (event: KeyboardEvent) => {
    once(event);
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    if (asks) setAsks(false);
    else onClose();
  };
  // Before anything else can have the focus: it returns to where it was.
  useLayoutEffect(() => {
    const dialog = place.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  // An error stands at the end of a form that may be longer than the window.
  useLayoutEffect(() => {
    if (error) place.current!.scrollTo(0, 9999);
  }, [error]);
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    if (busy) return;
    if (!onSubmit) return onClose();
    void run(new FormData(event.currentTarget as HTMLFormElement));
  };
  // Before what cannot be undone: the first control has the focus, and a key that is held down would press it.
  const cancel = onSubmit && <button type="button" onClick={onClose}>Cancel</button>;
  return (
    <dialog ref={place} aria-labelledby="dialog" onKeyDown={key} onCancel={(event) => { event.preventDefault(); onClose(); }}>
      <form onSubmit={send}>
        <h2 id="dialog">{title}</h2>
        {children}
        <Problem error={error} />
        {asks && <Dropping onStay={() => setAsks(false)} onLeave={leave} />}
        <p class="buttons">
          {danger && cancel}
          <button type="submit" class={danger ? "danger" : "primary"} aria-disabled={busy} disabled={disabled}>{submit ?? "Done"}</button>
          {!danger && cancel}
        </p>
      </form>
    </dialog>
  );
}

function Dropping({ onStay, onLeave }: { onStay: () => void; onLeave: () => void }) {
  const stay = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    stay.current?.focus();
    return () => before instanceof HTMLElement && before.focus();
  }, []);
  return (
    <div class="problem" role="alertdialog" aria-label="Discard what you have written?">
      <p>What you have written will be lost.</p>
      <p class="buttons"><button type="button" ref={stay} onClick={onStay}>Keep editing</button> <button type="button" class="danger" onClick={onLeave}>Discard</button></p>
    </div>
  );
}

/** A question before something that cannot be undone. */
export const Confirm = ({ title, children, submit, onClose, onConfirm }: {
  title: string;
  children: Content;
  submit: string;
  onClose: () => void;
  onConfirm: () => Promise<unknown>;
}) => <Dialog title={title} submit={submit} danger onClose={onClose} onSubmit={onConfirm}>{children}</Dialog>;

/** A secret that is shown this once. */
export function Secret({ title, secret, children, onClose }: { title: string; secret: string; children?: Content; onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose} submit="I have stored it">
      <p>Copy it now: it is not shown again.</p>
      <p class="secret"><code>{secret}</code> <Copy text={secret} what="the secret" /></p>
      {children}
    </Dialog>
  );
}

/** More rows of a list, below those that are shown. A button that is disabled would lose the focus, and the place in the list. */
export const More = ({ show, busy, error, onMore, children = "Show older" }: { show: boolean; busy: boolean; error?: unknown; onMore: () => void; children?: Content }) => (
  <>
    <Problem error={error} retry={onMore} />
    {show && <p class="buttons"><button type="button" aria-disabled={busy} onClick={() => busy || onMore()}>{children}</button></p>}
  </>
);
