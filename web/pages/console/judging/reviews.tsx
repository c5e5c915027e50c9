/** Reviews: a queue that is worked off by keyboard. */
/** @jsxImportSource preact */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Score } from "../../parts/score.js";
import { ApiError } from "../api.js";
import { Decision } from "../decision.js";
import { client, place as placeOf } from "../eventcolumns.js";
import { Filters } from "../filterbar.js";
import { count, many, total } from "../format.js";
import type { Place } from "../hash.js";
import { Links } from "../links.js";
import { NoEffect, put, standingOf } from "../standing.js";
import { useAction, useConsole, useLink, useLoad, useMayJudge, usePages, useQuery, useWriting } from "../state.js";
import { AccountLink, Button, Card, Choice, type Column, type Content, Dialog, Facts, Field, LabelBadge, More, Of, Problem, Show, Table, Time, useSelection, Verdict, VisitorLink } from "../ui.js";
import type { EventDetail, Label, ListStanding, Page, Review, Total } from "../wire.js";
import { nameOf, type Person, takers, usePeople } from "./people.js";
import { type Act, actOf, after, byRule, isWanted, WHY } from "./queue.js";

const MAX_LOADED = 1000;
const AT_ONCE = 200;

export function Reviews() {
  const { session, environment, place: { query } } = useConsole();
  const change = useQuery();
  const people = usePeople();
  const whose: [string, string][] = [["", "everybody"], ["none", "nobody"], ...takers(people, session.member?.id, query.assignee === "none" ? undefined : query.assignee)];
  return (
    <>
      <Filters clear={false}>
        <Field label="Reviews"><Choice value={query.state === "closed" || query.state === "list" ? query.state : ""} options={[["", "open, one by one"], ["list", "open, as a list"], ["closed", "closed"]]} onPick={(state) => change({ state, rule: undefined, review: undefined })} /></Field>
        <Field label="Assigned to"><Choice value={query.assignee ?? ""} options={whose} onPick={(assignee) => change({ assignee, review: undefined })} /></Field>
      </Filters>
      {query.state === "closed" ? <Closed people={people} /> : <Queue key={environment} people={people} />}
    </>
  );
}

/** The open ones of an environment, or of those one member's, up to a thousand: the oldest waits longest, and is the first. */
function useQueue(assignee?: string) {
  const { api, environment } = useConsole();
  return useLoad(async (signal) => {
    const reviews: Review[] = [];
    let cursor: string | undefined;
    do {
      const page = await api.get<Page & { reviews: Review[] }>("reviews", { environment, assignee, limit: AT_ONCE, cursor }, signal);
      reviews.push(...page.reviews);
      cursor = page.next_cursor;
    } while (cursor !== undefined && reviews.length < MAX_LOADED);
    return { reviews, isWhole: cursor === undefined };
  }, [assignee]);
}

/** Reviews as they are after a change, by their ids; `null` for one that is gone. */
type Changed = [id: string, review: Review | null][];

function Queue({ people }: { people: Person[] }) {
  const { place: { query } } = useConsole();
  const [since, setSince] = useState<ReadonlyMap<string, Review | null>>(new Map());
  // On what was before, not on what was drawn: keys come faster.
  const onChanged = (changed: Changed) => setSince((before) => new Map([...before, ...changed]));
  const loaded = useQueue();
  const given = { since, people, onChanged };
  // Somebody's own may be behind the first thousand of all.
  return <Show of={loaded}>{(found) => (found.isWhole || !query.assignee ? <Opened {...given} {...found} onEmpty={loaded.reload} /> : <OpenedOf {...given} assignee={query.assignee} />)}</Show>;
}

interface Kept {
  since: ReadonlyMap<string, Review | null>;
  people: Person[];
  onChanged: (changed: Changed) => void;
}

function OpenedOf({ assignee, ...given }: Kept & { assignee: string }) {
  const loaded = useQueue(assignee);
  return <Show of={loaded}>{(found) => <Opened {...given} {...found} onEmpty={loaded.reload} />}</Show>;
}

/** `onEmpty`: there are others behind those that were loaded, which are all closed. */
function Opened({ reviews: found, isWhole, since, people, onChanged, onEmpty }: Kept & { reviews: Review[]; isWhole: boolean; onEmpty: () => void }) {
  const { api, environment, place: { query } } = useConsole();
  const change = useQuery();
  const counted = useLoad((signal) => isWhole ? Promise.resolve(undefined) : api.get<Total>("reviews/count", { state: "open", environment, assignee: query.assignee }, signal), [isWhole, query.assignee]).value;
  const ofAll = (loaded: number) => `${count(counted ? loaded + counted.count - found.length : loaded)}${counted?.is_exact ? "" : more}`;
  const all = found.flatMap((review) => (since.has(review.id) ? (since.get(review.id) ?? []) : review));
  const reviews = all.filter((review) => isWanted(review, query.assignee));
  const shown = reviews.filter((review) => !query.rule || (review.rule ?? "by hand") === query.rule);
  const more = isWhole ? "" : "+";
  useEffect(() => { if (!isWhole && all.length === 0) onEmpty(); }, [all.length]);
  const empty = <div class="empty"><p>No open review{more && ` among the oldest ${count(found.length)}`} in {environment}{query.rule ? " by this rule" : ""}{query.assignee === "none" ? " assigned to nobody" : query.assignee ? " assigned to this member" : ""}. A rule with the decision review opens reviews.</p></div>;
  const given = { reviews: shown, more, people, onChanged };
  return (
    <>
      <ul class="numbers">
        <li><strong>{ofAll(reviews.length)}</strong> open in {environment}{all.length > reviews.length && `, of ${ofAll(all.length)}`}</li>
        {byRule(reviews).slice(0, 6).map(([rule, number]) => <li key={rule}><button type="button" class="sort" aria-pressed={query.rule === rule} onClick={() => change({ rule: query.rule === rule ? undefined : rule, review: undefined })}><strong>{count(number)}{more}</strong> <bdi>{rule}</bdi></button></li>)}
      </ul>
      {query.state !== "list" ? <Work {...given} empty={empty} /> : shown.length === 0 ? empty : <OpenList {...given} />}
    </>
  );
}

/** Whether a key that was pressed is for a text or a control, or for an open dialog, wherever in it the focus is. */
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName) || document.querySelector("dialog[open]") !== null);

interface Given {
  reviews: Review[];
  /** `+` where there are others, which were not loaded. */
  more: string;
  people: Person[];
  onChanged: (changed: Changed) => void;
}

/** Something that was done by a key, and the way back. */
interface Done {
  said: string;
  /** What to say once it is taken back; otherwise that this is undone. */
  undone?: string;
  undo: () => void;
}

const isCode = (error: unknown, code: string): boolean => error instanceof ApiError && error.code === code;

/**
 * Requests about reviews, one after the other, however fast they are asked for; a tab that is closed meanwhile asks first. An error
 * is said until its review is acted on again, or `again` returns to it: the next key is about another one. What `onFailed` returns
 * brings back what was written for it.
 */
function useInTurn() {
  const { writing, error, setError } = useWriting();
  const [waiting, setWaiting] = useState(0);
  const failed = useRef<{ of: Review; restore: (() => void) | void }>();
  const again = () => {
    setError(undefined);
    failed.current!.restore?.();
    return failed.current!.of.id;
  };
  const run = (of: Review, request: () => Promise<unknown>, onFailed: (error: unknown) => (() => void) | void) => {
    setWaiting((number) => number + 1);
    if (failed.current?.of.id === of.id) setError(undefined);
    writing.last = writing.last.then(request).catch((caught: unknown) => {
      failed.current = { of, restore: onFailed(caught) };
      writing.fail(caught);
    }).then(() => setWaiting((number) => number - 1));
  };
  useEffect(() => {
    if (waiting === 0) return undefined;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [waiting > 0]);
  return { run, again, waiting, error };
}

function Work({ reviews, more, people, onChanged, empty }: Given & { empty: Content }) {
  const { api, session, notify, place } = useConsole();
  const link = useLink();
  const mayJudge = useMayJudge();
  const inTurn = useInTurn();
  // What keys have changed already, drawn or not: each key is about the review that the one before it has left, and about none that
  // comes back meanwhile. `shown` is its id; once that is gone, the one that took its place is meant.
  const now = useRef({ at: 0, shown: undefined as string | undefined, reason: "", gone: new Set<string>(), done: [] as Done[] }).current;
  // Of each address that somebody opens, also while the queue is shown.
  const led = useRef<{ by?: Place; missing?: string | undefined }>({}).current;
  if (led.by !== place) {
    const { review } = place.query;
    now.shown = review ?? now.shown;
    Object.assign(led, { by: place, missing: reviews.some(({ id }) => id === review) ? undefined : review });
  }
  const [, draw] = useState(0);
  const note = useRef<HTMLTextAreaElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const drawn = useRef(reviews);
  drawn.current = reviews;
  const left = () => drawn.current.filter(({ id }) => !now.gone.has(id));
  const current = () => {
    const all = left(), found = all.find(({ id }) => id === now.shown) ?? all[after(now.at, all.length)];
    Object.assign(now, { at: all.indexOf(found!), shown: found?.id });
    return found;
  };
  const [listed, setListed] = useState<{ of: string; list: ListStanding }>();
  const did = (said: string, undo: () => void): Done => {
    const done = { said, undo };
    now.done.push(done);
    return done;
  };
  const forget = (done: Done) => { now.done = now.done.filter((one) => one !== done); };
  // What was said of it before is not so.
  const failed = (done: Done) => {
    forget(done);
    notify(`Not done: ${done.said}`);
  };
  const close = (review: Review, label: Label) => {
    const text = note.current?.value.trim() ?? "", reason = now.reason;
    if (note.current) note.current.value = "";
    const back = () => {
      now.gone.delete(review.id);
      onChanged([[review.id, review]]);
    };
    now.gone.add(review.id);
    now.reason = "";
    onChanged([[review.id, null]]);
    const done = did(`Closed as ${label}.`, () => {
      back();
      now.shown = review.id;
      inTurn.run(review, async () => onChanged([[review.id, (await api.manage<{ review: Review }>("POST", `reviews/${review.id}/reopen`)).review]]), (error) => {
        if (!isCode(error, "review_open")) onChanged([[review.id, null]]);
      });
    });
    done.undone = `The review is open again. The label ${label} stays until you close it.`;
    inTurn.run(review, () => api.manage("POST", `reviews/${review.id}/close`, { label, ...(reason && { label_reason: reason }), ...(text && { note: text }) }), (error) => {
      failed(done);
      if (isCode(error, "review_closed")) return;
      back();
      return () => {
        now.reason = reason;
        if (note.current) note.current.value ||= text;
      };
    });
    notify(`Closed as ${label}. ${left().length > 0 ? "The next one is open." : "That was the last one."}`);
    heading.current?.focus();
  };
  const block = (review: Review) => {
    let back = async () => {};
    const done = did("Blocked.", () => inTurn.run(review, async () => { await back(); setListed(undefined); }, () => void now.done.push(done)));
    inTurn.run(review, async () => {
      const lists = await standingOf(api, review.environment, { kind: "visitor", value: review.visitor_id });
      const list = lists.find(({ name }) => name === "blocked_visitors")!;
      if (list.entry) {
        forget(done);
        return notify("This visitor was on blocked_visitors before.");
      }
      back = await put(api, lists, "blocked", review.visitor_id, `review ${review.id}`);
      done.said = list.reason ? `Added to ${list.name}.` : "Blocked.";
      setListed({ of: review.id, list });
      notify(`${list.reason ? "The visitor is added to blocked_visitors" : "The visitor is blocked from the next request on"}. The review stays open: judge it, too.`);
    }, () => failed(done));
  };
  const own = session.member?.id;
  const assign = (review: Review, assignee: string | null) => {
    const give = (to: string | null) => inTurn.run(review, async () => {
      onChanged([[review.id, (await api.manage<{ review: Review }>("PATCH", `reviews/${review.id}`, { assignee: to })).review]]);
    }, () => failed(done));
    const said = assignee === null ? "Assigned to nobody." : `Assigned to ${nameOf(assignee, people, own)}.`;
    const done = did(said, () => give(review.assignee));
    give(assignee);
    notify(said);
  };
  const undo = () => {
    const done = now.done.pop();
    if (!done) return notify("There is nothing to undo.");
    done.undo();
    notify(done.undone ?? `Undone: ${done.said}`);
  };
  const act = (wanted: Act) => {
    const review = current();
    if (wanted === "next" || wanted === "previous") now.shown = left()[now.at + (wanted === "next" ? 1 : -1)]?.id ?? now.shown;
    else if (!mayJudge) notify("A viewer only looks.");
    else if (wanted === "undo") undo();
    else if (typeof wanted === "object") now.reason = wanted.reason;
    else if (review === undefined) return;
    else if (wanted === "note") note.current?.focus();
    else if (wanted === "block") block(review);
    else if (wanted === "take") own === undefined ? notify("A management key cannot be assigned a review.") : assign(review, own);
    else close(review, wanted);
    draw((number) => number + 1);
  };
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      const found = actOf(event, isTyping(event.target));
      if (found === undefined) return;
      event.preventDefault();
      act(found);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
  const shown = left(), review = current(), { at } = now, last = now.done.at(-1);
  // The address is that of the review: Back leads to it, and so does a link that a colleague is sent.
  useLayoutEffect(() => {
    try {
      history.replaceState(history.state, "", link(place.screen, "", { ...place.query, review: review?.id }));
    } catch {
      // Browsers allow so many within some seconds, and a key is held down.
    }
  }, [review?.id, place]);
  return (
    <>
      {led.missing && <Elsewhere id={led.missing} people={people} />}
      {(review || last) && (
        <div class="bottom-bar">
          {review && (
            <p class="buttons">
              <Button kind="small" disabled={at === 0} onClick={() => act("previous")}>Previous (k)</Button>
              <span role="status">{count(at + 1)} of {count(shown.length)}{more}</span>
              <Button kind="small" disabled={at === shown.length - 1} onClick={() => act("next")}>Next (j)</Button>
              <label>Reason <Choice value={now.reason} options={WHY.map(([one, name], digit): [string, string] => [one, `${name} (${digit})`])} onPick={(reason) => act({ reason })} /></label>
              <Button judge kind="danger" onClick={() => act("fraud")}>Fraud (f)</Button>
              <Button judge onClick={() => act("legitimate")}>Legitimate (l)</Button>
              <Button judge kind="danger" onClick={() => act("block")}>Block visitor (b)</Button>
              <label>Assigned to <Assignee review={review} people={people} onPick={(to) => { assign(review, to); draw((number) => number + 1); }} /></label>
            </p>
          )}
          {review && <label class="field"><span>Note (n), kept with the review</span><textarea ref={note} rows={1} maxLength={2000} onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()} /></label>}
          {review && listed?.of === review.id && <NoEffect list={listed.list} environment={review.environment} />}
          {last && <p class="buttons"><span>{last.said}</span> <Button judge kind="small" onClick={() => act("undo")}>Undo (u)</Button>{inTurn.waiting > 0 && <span class="quiet">Saving …</span>}</p>}
          <Problem error={inTurn.error} retry={() => { now.shown = inTurn.again(); }} />
        </div>
      )}
      {review
        ? <><h2 ref={heading} tabIndex={-1}><bdi>{review.rule ?? "Opened by hand"}</bdi>, <Time at={review.opened_at} />{review.reopened_at && <>, opened again <Time at={review.reopened_at} /></>}</h2><One key={review.id} review={review} /></>
        : empty}
    </>
  );
}

/** What became of the review that the address names, where it is none of the queue, which begins with another one. */
function Elsewhere({ id, people }: { id: string; people: Person[] }) {
  const { api, session } = useConsole();
  const link = useLink();
  const loaded = useLoad(() => api.manage<{ review: Review }>("GET", `reviews/${encodeURIComponent(id)}`), [id]);
  return (
    <Show of={loaded}>{({ review }) => (
      <p class="note" role="status">
        The review that you were led to {review.state === "closed" ? <>is closed{review.closed_by && `, by ${nameOf(review.closed_by, people, session.member?.id)}`}: <LabelBadge label={review.label} reason={review.label_reason} /></> : `is open in ${review.environment}, but not among those that are chosen here.`}
        {" "}<a href={link("events", review.request_id, { environment: review.environment })}>Its event</a>
      </p>
    )}</Show>
  );
}

/** Who takes care of a review; a viewer reads it. */
function Assignee({ review: { assignee }, people, onPick }: { review: Review; people: Person[]; onPick: (to: string | null) => void }) {
  const { session } = useConsole();
  const own = session.member?.id;
  if (!useMayJudge()) return <>{assignee ? nameOf(assignee, people, own) : "nobody"}</>;
  const options: [string, string][] = [["", "nobody"], ...takers(people, own, assignee).map(([id, name]): [string, string] => [id, id === own ? "you (a)" : name])];
  // Never disabled: it would lose the focus, and the rest of a name that is being typed would be keys of the queue.
  return <Choice value={assignee ?? ""} options={options} onPick={(to) => onPick(to || null)} />;
}

/** What somebody needs to judge one. */
function One({ review }: { review: Review }) {
  const { api, texts } = useConsole();
  const link = useLink();
  const loaded = useLoad((signal) => api.get<EventDetail>(`events/${review.request_id}`, {}, signal), [review.request_id]);
  return (
    <>
      <p class="summary">
        <VisitorLink id={review.visitor_id} short /> {review.account_id && <AccountLink id={review.account_id} />} <a href={link("events", review.request_id)}>The event</a>
      </p>
      <Show of={loaded}>{({ event }) => (
        <>
          <p class="summary"><Verdict row={event} /> <Time at={event.occurred_at} /> {event.action}</p>
          <Decision event={event} />
          <Score event={event} texts={texts} />
          <Card title="Client and network"><Facts rows={[["Client", client(event)], ["From", placeOf(event)], ["Network", event.asn_name ?? event.asn]]} /></Card>
          {event.identifiable !== false && <Links visitor={event.visitor_id} />}
        </>
      )}</Show>
    </>
  );
}

/** Open ones as a table, to close some together. */
function OpenList({ reviews, people, onChanged }: Given) {
  const { api, session, notify } = useConsole();
  const link = useLink();
  const [open, setOpen] = useState<"close" | "assign">();
  const own = session.member?.id;
  const selection = useSelection(reviews.map(({ id }) => id));
  /** Changes all that are chosen: how many, and what to say of those that somebody else has closed meanwhile, which are gone. */
  const each = async (change: (id: string) => Promise<Review | null>): Promise<[number: number, closed: string]> => {
    const changed: Changed = [];
    let closed = 0;
    try {
      for (const id of selection.chosen) {
        changed.push([id, await change(id).catch((error: unknown) => {
          if (!isCode(error, "review_closed")) throw error;
          closed += 1;
          return null;
        })]);
      }
    } finally {
      onChanged(changed);
    }
    setOpen(undefined);
    return [changed.length - closed, closed ? ` ${many(closed, "review")} had been closed before.` : ""];
  };
  const columns: Column<Review>[] = [
    { head: "Opened", cell: (row) => <a href={link("events", row.request_id)}><Time at={row.opened_at} /></a> },
    { head: "Rule", cell: (row) => row.rule ?? "by hand" },
    { head: "Score", cell: (row) => (row.suspect_score === null ? "" : <span class={`badge ${row.suspect_level}`}>{row.suspect_score} {row.suspect_level}</span>) },
    { head: "Visitor", cell: (row) => <VisitorLink id={row.visitor_id} short /> },
    { head: "Account", cell: (row) => row.account_id && <AccountLink id={row.account_id} /> },
    { head: "Assigned to", cell: (row) => row.assignee && nameOf(row.assignee, people, own) },
  ];
  return (
    <>
      {selection.chosen.size > 0 && <div class="bottom-bar"><p class="buttons"><span role="status">{many(selection.chosen.size, "review")} selected</span><Button judge kind="primary" onClick={() => setOpen("close")}>Close …</Button><Button judge onClick={() => setOpen("assign")}>Assign …</Button></p></div>}
      <Table name="Open reviews" columns={columns} rows={reviews} keyOf={(row) => row.id} selection={selection} />
      {open === "assign" && (
        <Dialog title={`Assign ${many(selection.chosen.size, "review")}`} submit="Assign" onClose={() => setOpen(undefined)} onSubmit={async (form) => {
          const assignee = String(form.get("assignee")) || null;
          const [number, closed] = await each(async (id) => (await api.manage<{ review: Review }>("PATCH", `reviews/${id}`, { assignee })).review);
          notify(`${many(number, "review")} assigned to ${assignee === null ? "nobody" : nameOf(assignee, people, own)}.${closed}`);
        }}>
          <Field label="To"><Choice name="assignee" value={own ?? ""} options={[["", "nobody"], ...takers(people, own)]} /></Field>
        </Dialog>
      )}
      {open === "close" && (
        <Dialog title={`Close ${many(selection.chosen.size, "review")}`} submit="Close" onClose={() => setOpen(undefined)} onSubmit={async (form) => {
          const reason = String(form.get("reason")), note = String(form.get("note")).trim();
          const [number, closed] = await each(async (id) => {
            await api.manage("POST", `reviews/${id}/close`, { label: form.get("label"), ...(reason && { label_reason: reason }), ...(note && { note }) });
            return null;
          });
          notify(`${many(number, "review")} closed.${closed}`);
        }}>
          <Field label="As"><Choice name="label" value="fraud" options={["fraud", "legitimate"]} /></Field>
          <Field label="Reason"><Choice name="reason" value="" options={WHY} /></Field>
          <Field label="Note"><input name="note" maxLength={2000} autocomplete="off" /></Field>
        </Dialog>
      )}
    </>
  );
}

function Closed({ people }: { people: Person[] }) {
  const { api, session, notify, place: { query } } = useConsole();
  const [reopened, setReopened] = useState<ReadonlySet<string>>(new Set());
  const reopen = useAction(async (id: string) => {
    await api.manage("POST", `reviews/${id}/reopen`);
    setReopened((before) => new Set([...before, id]));
    notify("The review is open again. Its label stays until the review is closed again.");
  });
  const link = useLink();
  const { loaded, more, busy, error } = usePages(
    (cursor) => api.manage<Page & { reviews: Review[] }>("GET", "reviews", undefined, { state: "closed", assignee: query.assignee, limit: 50, cursor }),
    (page) => page.reviews,
    [query.assignee],
  );
  const counted = useLoad((signal) => api.get<Total>("reviews/count", { state: "closed", assignee: query.assignee }, signal), [query.assignee]).value;
  const columns: Column<Review>[] = [
    { head: "Opened", cell: (row) => <a href={link("events", row.request_id, { environment: row.environment })}><Time at={row.opened_at} /></a> },
    { head: "Closed", cell: (row) => <Time at={row.closed_at} /> },
    { head: "Label", cell: (row) => <LabelBadge label={row.label} reason={row.label_reason} /> },
    { head: "Rule", cell: (row) => row.rule ?? "by hand" },
    { head: "Visitor", cell: (row) => <Of environment={row.environment}><VisitorLink id={row.visitor_id} short /></Of> },
    { head: "Account", cell: (row) => row.account_id && <Of environment={row.environment}><AccountLink id={row.account_id} /></Of> },
    { head: "Closed by", cell: (row) => row.closed_by && nameOf(row.closed_by, people, session.member?.id) },
    { head: "Environment", cell: (row) => row.environment },
    { head: "Note", cell: (row) => row.note },
    { head: "Change", cell: (row) => <Button judge kind="small" busy={reopen.busy} name={`Open again: ${row.rule ?? "by hand"}, ${row.account_id ?? row.visitor_id}`} onClick={() => reopen.run(row.id)}>Open again</Button> },
  ];
  return (
    <Show of={loaded}>{({ rows: found, cursor }) => {
      const rows = found.filter(({ id }) => !reopened.has(id));
      return <>
        <Problem error={reopen.error} />
        <Table name="Closed reviews" columns={columns} rows={rows} keyOf={(row) => row.id} empty={<p>{cursor !== undefined ? "None of the newest closed reviews match. Look further back." : query.assignee ? "No closed review matches." : "No review was closed yet."}</p>} />
        <p class="quiet" role="status">{counted && counted.count > found.length ? `The newest ${found.length} of ${total(counted, "review")}.` : cursor === undefined && many(rows.length, "review")}</p>
        <More show={cursor !== undefined} busy={busy} error={error} onMore={more} />
      </>;
    }}</Show>
  );
}
