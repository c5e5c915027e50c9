/** A stacked chart of counts by period, and the same as a table. */
/** @jsxImportSource preact */
import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "./format.js";
import { Table } from "./ui.js";

export interface Series {
  name: string;
  /** The custom property with its color. */
  color: string;
  values: number[];
  /** The list of what it counts. */
  href?: string;
}

const HEIGHT = 220;
/** Room below for the times, and above the highest bar, in pixels. */
const BELOW = 24;
const ABOVE = 8;
const LABEL = 76;
const DIGIT = 8;
const DAY_S = 86_400;

/** Sums from the first series up to each: what a stacked chart draws. */
export function stacked(series: number[][]): number[][] {
  const sums: number[][] = [];
  for (const values of series) sums.push(values.map((value, at) => value + (sums[sums.length - 1]?.[at] ?? 0)));
  return sums;
}

/** Whole numbers from 0 to at least `most`, in even steps of 1, 2 or 5 times a power of ten: at most six. */
export function marks(most: number): number[] {
  const least = Math.max(1, most) / 5;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, power * [1, 2, 5, 10].find((factor) => factor * power >= least)!);
  return Array.from({ length: Math.ceil(Math.max(1, most) / step) + 1 }, (_, at) => at * step);
}

/** One path with a bar for each value between its two sums. */
function bars(below: number[] | undefined, above: number[], x: (at: number) => number, y: (value: number) => number, width: number): string {
  return above.map((value, at) => {
    const base = below?.[at] ?? 0;
    return value > base ? `M${x(at).toFixed(1)} ${y(base).toFixed(1)}V${y(value).toFixed(1)}h${width.toFixed(1)}V${y(base).toFixed(1)}z` : "";
  }).join("");
}

/** `times` in seconds, `step` in seconds between them. */
export function Chart({ name, times, step, series }: { name: string; times: number[]; step: number; series: Series[] }) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [at, setAt] = useState<number | null>(null);
  const [showsTable, setShowsTable] = useState(false);
  useEffect(() => {
    const element = place.current!;
    const resized = new ResizeObserver(() => setWidth(element.clientWidth));
    resized.observe(element);
    return () => resized.disconnect();
  }, []);
  return (
    <>
      <ul class="legend">
        {series.map(({ name: one, color, values, href }) => (
          <li key={one}><span class="swatch" style={{ background: `var(${color})` }} aria-hidden="true" /> {href ? <a href={href}>{one}</a> : one} <strong>{count(at === null ? values.reduce((sum, value) => sum + value, 0) : (values[at] ?? 0))}</strong></li>
        ))}
        <li class="quiet">{at === null ? "in total" : label(times[at] ?? 0, step)}</li>
      </ul>
      <div ref={place} class="chart" role="img" aria-label={`${name}. The same numbers are in the table below.`}>
        {width > 0 && <Drawing width={width} times={times} step={step} series={series} at={at} onPoint={setAt} />}
      </div>
      <button type="button" class="small" aria-expanded={showsTable} onClick={() => setShowsTable(!showsTable)}>{showsTable ? "Hide the table" : "Show as a table"}</button>
      {showsTable && (
        <Table
          name={name}
          keyOf={(row) => String(row)}
          rows={times.map((_, index) => index).reverse()}
          columns={[
            { head: step < DAY_S ? "Hour" : "Day (UTC)", cell: (row) => label(times[row] ?? 0, step) },
            ...series.map(({ name: head, values }) => ({ head, number: true, cell: (row: number) => count(values[row] ?? 0) })),
          ]}
        />
      )}
    </>
  );
}

function Drawing({ width, times, step, series, at, onPoint }: {
  width: number;
  times: number[];
  step: number;
  series: Series[];
  at: number | null;
  onPoint: (at: number | null) => void;
}) {
  const sums = stacked(series.map(({ values }) => values));
  const scale = marks(Math.max(0, ...(sums[sums.length - 1] ?? [])));
  const top = scale[scale.length - 1]!;
  const left = 10 + DIGIT * Math.max(2, count(top).length);
  const each = (width - left) / Math.max(1, times.length);
  const x = (index: number) => left + index * each;
  const y = (value: number) => HEIGHT - BELOW - (value / top) * (HEIGHT - BELOW - ABOVE);
  const named = ticks(times, step, LABEL / each);
  const point = (event: PointerEvent) => {
    const index = Math.floor((event.offsetX - left) / each);
    onPoint(index >= 0 && index < times.length ? index : null);
  };
  return (
    <svg width={width} height={HEIGHT} aria-hidden="true" onPointerMove={point} onPointerLeave={() => onPoint(null)}>
      {scale.map((mark) => (
        <g key={mark}>
          <line x1={left} x2={width} y1={y(mark)} y2={y(mark)} />
          <text x={left - 6} y={y(mark) + 4} text-anchor="end">{count(mark)}</text>
        </g>
      ))}
      {at !== null && <rect class="pointed" x={x(at)} y={ABOVE} width={each} height={HEIGHT - BELOW - ABOVE} />}
      {series.map(({ name, color }, index) => <path key={name} d={bars(sums[index - 1], sums[index]!, x, y, Math.max(each * 0.9, 1))} style={{ fill: `var(${color})` }} />)}
      {[...named].map(([index, text]) => x(index) + LABEL / 2 < width && <text key={index} x={x(index)} y={HEIGHT - 6}>{text}</text>)}
    </svg>
  );
}

/** Days are those of UTC, hours are local. */
function label(seconds: number, step: number): string {
  const time = new Date(1000 * seconds);
  if (step >= DAY_S) return time.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  return time.toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false });
}

const HOURS = [1, 2, 3, 6, 12, 24];

/** What stands below a chart, by its place among the times: each day by its date, and between them full hours of the clock, where there is
 * room for them. `apart`: how many times a text covers. */
export function ticks(times: number[], step: number, apart: number): Map<number, string> {
  const found = new Map<number, string>();
  const isDays = step >= DAY_S;
  const hours = HOURS.find((one) => isDays || (3600 * one) / step >= apart) ?? 24;
  let last = -Infinity;
  times.forEach((seconds, index) => {
    const time = new Date(1000 * seconds), hour = time.getHours();
    const isDate = isDays || hour === 0;
    if (index - last < apart || (!isDate && (hours === 24 || hour % hours !== 0))) return;
    if (isDate) found.set(index, time.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...(isDays && { timeZone: "UTC" }) }));
    else found.set(index, time.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", hour12: false }));
    last = index;
  });
  return found;
}
