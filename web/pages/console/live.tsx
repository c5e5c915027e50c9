/** Live: identifications as they arrive. */
/** @jsxImportSource preact */
import { useEffect, useRef, useState } from "preact/hooks";
import { useEventColumns } from "./eventcolumns.js";
import { FilterBar } from "./filterbar.js";
import { filters } from "./filters.js";
import { lazy } from "./lazy.js";
import { many } from "./format.js";
import { SavedViews } from "./saved.js";
import { useConsole } from "./state.js";
import { follow, type Listener, type StreamState } from "./stream.js";
import { type Column, Problem, Table } from "./ui.js";
import type { EventRow } from "./wire.js";

const FirstRun = lazy<{ waits: boolean }>(async () => (await import("./firstrun.js")).FirstRun);
const MAX_ROWS = 200;
const BEFORE = 20;
const DRAW_MS = 200;
const SPEAK_MS = 10_000;

type Row = EventRow | { missed: number; request_id: string };
const isMissed = (row: Row): row is { missed: number; request_id: string } => "missed" in row;

/** What arrived and is not drawn yet, newest first. */
function useStream(isPaused: boolean) {
  const { api, environment, place: { query } } = useConsole();
  const asked = JSON.stringify({ environment, ...filters(query) });
  const [rows, setRows] = useState<Row[]>([]);
  const [state, setState] = useState<StreamState>({ is: "connecting" });
  const [error, setError] = useState<unknown>();
  const [isHidden, setHidden] = useState(document.hidden);
  const [arrived, setArrived] = useState(0);
  const waiting = useRef<Row[]>([]);
  const last = useRef("");
  const [waits, setWaits] = useState(0);

  useEffect(() => {
    const look = () => setHidden(document.hidden);
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  useEffect(() => {
    setRows([]);
    waiting.current = [];
    last.current = "";
  }, [asked]);
  useEffect(() => {
    // A connection of a tab that nobody sees is one that another tab lacks: it resumes where it ended.
    if (isHidden) return undefined;
    const control = new AbortController();
    const sent = JSON.parse(asked) as Record<string, string>;
    const hold = (row: Row) => {
      waiting.current = [row, ...waiting.current].slice(0, MAX_ROWS);
    };
    const begin = async () => {
      if (last.current === "") {
        const { rows: before } = await api.get<{ rows: EventRow[] }>("events", { ...sent, limit: BEFORE }, control.signal);
        setRows(before);
        last.current = before[0]?.request_id ?? "";
      }
      return last.current;
    };
    const listener: Listener = {
      onState: setState,
      onEvent: (row) => {
        last.current = row.request_id;
        setArrived((number) => number + 1);
        hold(row);
      },
      onMissed: (missed) => hold({ missed, request_id: `missed ${missed} ${last.current}` }),
    };
    setError(undefined);
    follow(api, sent, begin, control.signal, listener).catch((caught: unknown) => control.signal.aborted || setError(caught));
    return () => control.abort();
  }, [asked, isHidden]);
  useEffect(() => {
    const draw = () => {
      setWaits(waiting.current.filter((row) => !isMissed(row)).length);
      if (isPaused || waiting.current.length === 0) return;
      const fresh = waiting.current;
      waiting.current = [];
      setRows((before) => [...fresh, ...before].slice(0, MAX_ROWS));
    };
    draw();
    const timer = setInterval(draw, DRAW_MS);
    return () => clearInterval(timer);
  }, [isPaused]);
  return { rows, state, error, isHidden, arrived, waits };
}

/** What a screen reader hears: now and then, not each row. */
function Spoken({ arrived }: { arrived: number }) {
  const [text, setText] = useState("");
  const newest = useRef(arrived);
  newest.current = arrived;
  useEffect(() => {
    let before = newest.current;
    const timer = setInterval(() => {
      if (newest.current > before) setText(`${many(newest.current - before, "new identification")}.`);
      before = newest.current;
    }, SPEAK_MS);
    return () => clearInterval(timer);
  }, []);
  return <p class="unseen" role="status">{text}</p>;
}

export function Live() {
  const [isPaused, setPaused] = useState(false);
  const { rows, state, error, isHidden, arrived, waits } = useStream(isPaused);
  const { environment, place: { query } } = useConsole();
  const isFiltered = Object.keys(filters(query)).length > 0;
  const shared = useEventColumns(rows.filter((row): row is EventRow => !isMissed(row)));
  const columns = shared.map((column, at): Column<Row> => ({
    ...column,
    cell: (row) => (isMissed(row) ? (at === 0 ? `${many(row.missed, "identification")} missed` : null) : column.cell(row)),
  }));
  return (
    <>
      <FilterBar names={["level", "decision", "signal", "account_id", "action", "country", "tag"]}><SavedViews /></FilterBar>
      {error === undefined && <div class="bar-of-state">
        <p class={`state ${isHidden ? "connecting" : isPaused ? "paused" : state.is}`}><span role="status">{described(state, isPaused)}</span>
          {isPaused && ` ${many(waits, "identification")} waiting${waits === MAX_ROWS ? " or more" : ""}.`}</p>
        <button type="button" onClick={() => setPaused(!isPaused)}>{isPaused ? "Resume" : "Pause"}</button>
      </div>}
      {state.is === "waiting" && <p class="quiet">{state.why} Trying again in {state.seconds} s.</p>}
      <Problem error={error} />
      <Spoken arrived={arrived} />
      <Table
        name="Identifications, newest first"
        columns={columns}
        rows={rows}
        keyOf={(row) => row.request_id}
        rowClass={(row) => (isMissed(row) ? "missed" : "event")}
        empty={state.is !== "open" ? <p>{state.is === "connecting" && error === undefined ? "Loading …" : "Nothing is loaded."}</p> : <>
          <p>No identification in {environment}{isFiltered ? " matches" : ""} yet. They appear here as they arrive.</p>
          {isFiltered && <p>Nothing arrives? Choose another environment above, or clear the filters.</p>}
        </>}
      />
      {state.is === "open" && rows.length === 0 && !isFiltered && <FirstRun waits={false} />}
    </>
  );
}

function described(state: StreamState, isPaused: boolean): string {
  if (state.is !== "open") return state.is === "connecting" ? "Connecting …" : "Connection lost.";
  return isPaused ? "Paused." : "Live.";
}
