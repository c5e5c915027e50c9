/** A stacked chart of counts by period, and the same as a table. */
/** @jsxImportSource preact */
import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { count } from "./format.js";
import { Table } from "./ui.js";

export interface Series {
  name: string;
  /** The custom property with its color. */
  color: string;
  values: number[];
}

const HEIGHT = 220;
const DIGIT = 8;
const DARK = "(prefers-color-scheme: dark)";

/** Sums from the first series up to each: what a stacked chart draws. */
export function stacked(series: number[][]): number[][] {
  const sums: number[][] = [];
  for (const values of series) sums.push(values.map((value, at) => value + (sums[sums.length - 1]?.[at] ?? 0)));
  return sums;
}

/** `times` in seconds, `step` in seconds between them. */
export function Chart({ name, times, step, series }: { name: string; times: number[]; step: number; series: Series[] }) {
  const place = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const [showsTable, setShowsTable] = useState(false);
  useEffect(() => {
    const element = place.current!;
    let chart: uPlot | undefined;
    let isGone = false;
    const draw = async () => {
      const { default: UPlot } = await import("uplot");
      if (isGone) return;
      chart?.destroy();
      chart = plot(UPlot, element, times, step, series, setAt);
    };
    const dark = matchMedia(DARK);
    const resized = new ResizeObserver(() => chart?.setSize({ width: element.clientWidth, height: HEIGHT }));
    draw().catch(() => setShowsTable(true));
    resized.observe(element);
    dark.addEventListener("change", draw);
    return () => {
      isGone = true;
      dark.removeEventListener("change", draw);
      resized.disconnect();
      chart?.destroy();
    };
  }, [times, step, series]);
  return (
    <>
      <ul class="legend">
        {series.map(({ name: one, color, values }) => (
          <li key={one}><span class="swatch" style={{ background: `var(${color})` }} aria-hidden="true" /> {one} <strong>{count(at === null ? values.reduce((sum, value) => sum + value, 0) : (values[at] ?? 0))}</strong></li>
        ))}
        <li class="quiet">{at === null ? "in total" : label(times[at] ?? 0, step)}</li>
      </ul>
      <div ref={place} class="chart" role="img" aria-label={`${name}. The same numbers are in the table below.`} />
      <button type="button" class="small" aria-expanded={showsTable} onClick={() => setShowsTable(!showsTable)}>{showsTable ? "Hide the table" : "Show as a table"}</button>
      {showsTable && (
        <Table
          name={name}
          keyOf={(row) => String(row)}
          rows={times.map((_, index) => index).reverse()}
          columns={[
            { head: step < 86_400 ? "Hour" : "Day (UTC)", cell: (row) => label(times[row] ?? 0, step) },
            ...series.map(({ name: head, values }) => ({ head, number: true, cell: (row: number) => count(values[row] ?? 0) })),
          ]}
        />
      )}
    </>
  );
}

/** Days are those of UTC, hours are local. */
function label(seconds: number, step: number): string {
  const time = new Date(1000 * seconds);
  if (step >= 86_400) return time.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  return time.toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false });
}

/** Hours by the clock, a new day by its date. */
function tick(seconds: number, step: number): string {
  const time = new Date(1000 * seconds);
  if (step >= 86_400 || time.getHours() + time.getMinutes() === 0) {
    return time.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...(step >= 86_400 && { timeZone: "UTC" }) });
  }
  return time.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", hour12: false });
}

function plot(UPlot: typeof uPlot, element: HTMLElement, times: number[], step: number, series: Series[], onPoint: (at: number | null) => void): uPlot {
  const style = getComputedStyle(element);
  const color = (property: string) => style.getPropertyValue(property).trim();
  const bars = UPlot.paths.bars!({ size: [0.9, 40], align: 1 });
  // The tallest first, so that each sum is drawn over the next one.
  const sums = stacked(series.map(({ values }) => values)).reverse();
  const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
  const options: uPlot.Options = {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: { x: { time: true, range: (_, from, to) => [from, to + step] }, y: { range: (_, __, most) => [0, Math.max(4, most * 1.05)] } },
    axes: [{ ...axis, space: 70, values: (_, ticks) => ticks.map((at) => tick(at, step)) }, { ...axis, size: (_, shown) => 18 + DIGIT * Math.max(4, ...(shown ?? []).map((one) => one.length)), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7], values: (_, ticks) => ticks.map(count) }],
    series: [{}, ...[...series].reverse().map((one) => ({ fill: color(one.color), paths: bars, points: { show: false } }))],
    hooks: { setCursor: [(chart) => onPoint(chart.cursor.idx ?? null)] },
  };
  if (step >= 86_400) options.tzDate = (seconds) => UPlot.tzDate(new Date(1000 * seconds), "UTC");
  return new UPlot(options, [times, ...sums], element);
}
