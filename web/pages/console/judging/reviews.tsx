/** Reviews: a queue that is worked off by keyboard. */
/** @jsxImportSource preact */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Score } from "../../parts/score.js";
import { Decision } from "../decision.js";
import { client, place as placeOf } from "../eventlist.js";
import { Filters } from "../filterbar.js";
import { many, words } from "../format.js";
import { Links } from "../links.js";
import { usePages } from "../lists.js";
import { NoEffect, standingOf } from "../standing.js";
import { useAction, useConsole, useLink, useLoad, useMayJudge, useQuery } from "../state.js";
import { AccountLink, Button, Card, Choice, type Column, Dialog, Facts, Field, LabelBadge, More, Problem, Show, Table, Time, useSelection, Verdict, VisitorLink } from "../ui.js";
import type { EventDetail, Label, ListStanding, Page, Review } from "../wire.js";
import { REASONS } from "./label.js";
import { nameOf, type Person, takers, usePeople } from "./people.js";
import { actOf, after, byRule, isWanted } from "./queue.js";

const MAX_LOADED = 1000;
const AT_ONCE = 200;

export function Reviews() {
  const { session, place: { query } } = useConsole();
  const change = useQuery();
  const people = usePeople();
  const whose: [string, string][] = [["", "everybody"], ["none", "nobody"], ...takers(people, session.member?.id, query.assignee === "none" ? undefined : query.assignee)];
  return (
    <>
      <Filters clear={false}>
        <Field label="Reviews"><Choice value={query.state === "closed" || query.state === "list" ? query.state : ""} options={[["", "open, one by one"], ["list", "open, as a list"], ["closed", "closed"]]} onPick={(state) => change({ state, rule: undefined })} /></Field>
        <Field label="Assigned to"><Choice value={query.assignee ?? ""} options={whose} onPick={(assignee) => change({ assignee })} /></Field>
      </Filters>
      {query.state === "closed" ? <Closed people={people} /> : <Queue people={people} />}
    </>
  );
}

/** All that are open, up to a thousand: the oldest waits longest, and is the first. */
function useQueue() {
  const { api, environment } = useConsole();
  return useLoad(async () => {
    const found: Review[] = [];
    let cursor: string | undefined;
    do {
      const page: Page & { reviews: Review[] } = await api.manage("GET", "reviews", undefined, { state: "open", limit: AT_ONCE, cursor });
      found.push(...page.reviews);
      cursor = page.next_cursor;
    } while (cursor !== undefined && found.length < MAX_LOADED);
    return { reviews: found.filter((review) => review.environment === environment).reverse(), isWhole: cursor === undefined };
  }, [environment]);
}

function Queue({ people }: { people: Person[] }) {
  const { environment, place: { query } } = useConsole();
  const change = useQuery();
  const loaded = useQueue();
  return (
    <Show of={loaded}>{({ reviews: all, isWhole }) => {
      const reviews = all.filter((review) => isWanted(review, query.assignee));
      const shown = reviews.filter((review) => !query.rule || (review.rule ?? "by hand") === query.rule);
      const onGone = (ids: Set<string>) => loaded.set({ reviews: all.filter((one) => !ids.has(one.id)), isWhole });
      const onAssigned = (changed: Review[]) => loaded.set({ reviews: all.map((one) => changed.find(({ id }) => id === one.id) ?? one), isWhole });
      const given = { reviews: shown, people, onGone, onAssigned };
      return (
        <>
          <ul class="numbers">
            <li><strong>{reviews.length}{!isWhole && "+"}</strong> open in {environment}{query.assignee && `, of ${all.length}`}</li>
            {byRule(reviews).slice(0, 6).map(([rule, number]) => <li key={rule}><button type="button" class="sort" aria-pressed={query.rule === rule} onClick={() => change({ rule: query.rule === rule ? undefined : rule })}><strong>{number}</strong> {rule}</button></li>)}
          </ul>
          {shown.length === 0
            ? <div class="empty"><p>No open review in {environment}{query.rule ? " by this rule" : ""}{query.assignee === "none" ? " that nobody has" : query.assignee ? " of this member" : ""}. A rule that decides review opens them.</p></div>
            : query.state === "list"
            ? <OpenList {...given} />
            : <Work {...given} />}
        </>
      );
    }}</Show>
  );
}

/** Whether a key that was pressed is one of a text or a control. */
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName) || target.closest("dialog") !== null);

interface Given {
  reviews: Review[];
  people: Person[];
  onGone: (ids: Set<string>) => void;
  onAssigned: (changed: Review[]) => void;
}

function Work({ reviews, people, onGone, onAssigned }: Given) {
  const { api, session, notify } = useConsole();
  const [wanted, go] = useState(0);
  const [reason, setReason] = useState("");
  const note = useRef<HTMLTextAreaElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const at = after(wanted, reviews.length);
  const review = reviews[at]!;
  const closing = useAction(async (label: Label) => {
    const text = note.current?.value.trim() ?? "";
    await api.manage("POST", `reviews/${review.id}/close`, { label, ...(reason && { label_reason: reason }), ...(text && { note: text }) });
    if (note.current) note.current.value = "";
    notify(`Closed as ${label}. ${reviews.length > 1 ? "The next one is open." : "That was the last one."}`);
    onGone(new Set([review.id]));
    heading.current?.focus();
  });
  const [listed, setListed] = useState<{ of: string; list: ListStanding }>();
  const block = useAction(async () => {
    const list = (await standingOf(api, review.environment)).find(({ name }) => name === "blocked_visitors")!;
    const entries = [{ value: review.visitor_id, note: `review ${review.id}` }];
    await api.manage("POST", `lists/${list.id}/entries`, { entries });
    setListed({ of: review.id, list });
    notify(`${list.reason ? "The visitor is added to blocked_visitors" : "The visitor is blocked from the next request on"}. The review stays open: judge it, too.`);
  });
  const own = session.member?.id;
  const assign = useAction(async (assignee: string | null) => {
    const changed = await api.manage<{ review: Review }>("PATCH", `reviews/${review.id}`, { assignee });
    notify(assignee === null ? "Assigned to nobody." : `Assigned to ${nameOf(assignee, people, own)}.`);
    onAssigned([changed.review]);
  });
  const act = (wantedAct: ReturnType<typeof actOf>) => {
    if (wantedAct === "next") go(Math.min(at + 1, reviews.length - 1));
    else if (wantedAct === "previous") go(Math.max(at - 1, 0));
    else if (wantedAct === "note") note.current?.focus();
    else if (wantedAct === "block") void block.run();
    else if (wantedAct === "take") own !== undefined && !assign.busy && void assign.run(own);
    else if (wantedAct !== undefined && !closing.busy) void closing.run(wantedAct);
  };
  // Together with what is drawn: a key that follows at once is about the review that is seen, and not lost.
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
  return (
    <>
      <div class="bottom-bar">
        <p class="buttons">
          <Button kind="small" disabled={at === 0} onClick={() => act("previous")}>Previous (k)</Button>
          <span role="status">{at + 1} of {reviews.length}</span>
          <Button kind="small" disabled={at === reviews.length - 1} onClick={() => act("next")}>Next (j)</Button>
          <label>Reason <Choice value={reason} options={[["", "none"], ...REASONS.map((one): [string, string] => [one, words(one)])]} onPick={setReason} /></label>
          <Button judge kind="danger" busy={closing.busy} onClick={() => act("fraud")}>Fraud (f)</Button>
          <Button judge busy={closing.busy} onClick={() => act("legitimate")}>Legitimate (l)</Button>
          <Button judge kind="danger" busy={block.busy} onClick={() => act("block")}>Block visitor (b)</Button>
          <label>Assigned to <Assignee review={review} people={people} onPick={(to) => void assign.run(to)} /></label>
        </p>
        <label class="field"><span>Note (n), kept with the review</span><textarea ref={note} rows={1} maxLength={2000} onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()} /></label>
        {listed?.of === review.id && <NoEffect list={listed.list} environment={review.environment} />}
        <Problem error={closing.error ?? block.error ?? assign.error} />
      </div>
      <h2 ref={heading} tabIndex={-1}>{review.rule ?? "Opened by hand"}, <Time at={review.opened_at} /></h2>
      <One key={review.id} review={review} />
    </>
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
function OpenList({ reviews, people, onGone, onAssigned }: Given) {
  const { api, session, notify } = useConsole();
  const link = useLink();
  const [open, setOpen] = useState<"close" | "assign">();
  const own = session.member?.id;
  const selection = useSelection(reviews.map(({ id }) => id));
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
      {selection.chosen.size > 0 && <div class="bottom-bar"><p class="buttons"><span role="status">{many(selection.chosen.size, "review")} chosen</span><Button judge kind="primary" onClick={() => setOpen("close")}>Close …</Button><Button judge onClick={() => setOpen("assign")}>Assign …</Button></p></div>}
      <Table name="Open reviews" columns={columns} rows={reviews} keyOf={(row) => row.id} selection={selection} />
      {open === "assign" && (
        <Dialog title={`Assign ${many(selection.chosen.size, "review")}`} submit="Assign" onClose={() => setOpen(undefined)} onSubmit={async (form) => {
          const assignee = String(form.get("assignee")) || null, changed: Review[] = [];
          try {
            for (const id of selection.chosen) changed.push((await api.manage<{ review: Review }>("PATCH", `reviews/${id}`, { assignee })).review);
            setOpen(undefined);
            notify(`${many(changed.length, "review")} assigned to ${assignee === null ? "nobody" : nameOf(assignee, people, own)}.`);
          } finally {
            onAssigned(changed);
          }
        }}>
          <Field label="To"><Choice name="assignee" value={own ?? ""} options={[["", "nobody"], ...takers(people, own)]} /></Field>
        </Dialog>
      )}
      {open === "close" && (
        <Dialog title={`Close ${many(selection.chosen.size, "review")}`} submit="Close" onClose={() => setOpen(undefined)} onSubmit={async (form) => {
          const reason = String(form.get("reason")), note = String(form.get("note")).trim();
          const done = new Set<string>();
          try {
            for (const id of selection.chosen) {
              await api.manage("POST", `reviews/${id}/close`, { label: form.get("label"), ...(reason && { label_reason: reason }), ...(note && { note }) });
              done.add(id);
            }
            setOpen(undefined);
            notify(`${many(done.size, "review")} closed.`);
          } finally {
            if (done.size > 0) onGone(done);
          }
        }}>
          <Field label="As"><Choice name="label" value="fraud" options={["fraud", "legitimate"]} /></Field>
          <Field label="Reason"><Choice name="reason" value="" options={[["", "none"], ...REASONS.map((one): [string, string] => [one, words(one)])]} /></Field>
          <Field label="Note"><input name="note" maxLength={2000} autocomplete="off" /></Field>
        </Dialog>
      )}
    </>
  );
}

function Closed({ people }: { people: Person[] }) {
  const { api, session, place: { query } } = useConsole();
  const link = useLink();
  const { loaded, more, busy, error } = usePages(
    (cursor) => api.manage<Page & { reviews: Review[] }>("GET", "reviews", undefined, { state: "closed", assignee: query.assignee, limit: 50, cursor }),
    (page) => page.reviews,
    [query.assignee],
  );
  const columns: Column<Review>[] = [
    { head: "Closed", cell: (row) => <a href={link("events", row.request_id)}><Time at={row.closed_at} /></a> },
    { head: "Label", cell: (row) => <LabelBadge label={row.label} reason={row.label_reason} /> },
    { head: "Rule", cell: (row) => row.rule ?? "by hand" },
    { head: "Visitor", cell: (row) => <VisitorLink id={row.visitor_id} short /> },
    { head: "Account", cell: (row) => row.account_id && <AccountLink id={row.account_id} /> },
    { head: "Closed by", cell: (row) => row.closed_by && nameOf(row.closed_by, people, session.member?.id) },
    { head: "Environment", cell: (row) => row.environment },
    { head: "Note", cell: (row) => row.note },
  ];
  return (
    <Show of={loaded}>{({ rows, cursor }) => (
      <>
        <Table name="Closed reviews" columns={columns} rows={rows} keyOf={(row) => row.id} empty={<p>No review was closed yet.</p>} />
        <p class="quiet" role="status">{many(rows.length, "review")}</p>
        <Problem error={error} retry={more} />
        <More show={cursor !== undefined} busy={busy} onMore={more} />
      </>
    )}</Show>
  );
}
