/** The distribution of scores by label: fraud to the left, legitimate to the right, so that the side tells and not the color. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { count, share } from "../format.js";
import { Card, type Column, Table } from "../ui.js";
import type { PerformanceScore } from "../wire.js";

/** "30 to 39", "0", "500 and more". */
export const range = ({ from, to }: Pick<PerformanceScore, "from" | "to">): string =>
  to === null ? `${from} and more` : to === from + 1 ? String(from) : `${from} to ${to - 1}`;

/** Without the empty scores above the highest that any event has. */
export function used(lines: PerformanceScore[]): PerformanceScore[] {
  let length = lines.length;
  while (length > 0 && lines[length - 1]!.fraud + lines[length - 1]!.legitimate === 0) length -= 1;
  return lines.slice(0, length);
}

export function Scores({ lines }: { lines: PerformanceScore[] }) {
  const [showsTable, setShowsTable] = useState(false);
  const shown = used(lines);
  const all = { fraud: 0, legitimate: 0 };
  for (const { fraud, legitimate } of shown) {
    all.fraud += fraud;
    all.legitimate += legitimate;
  }
  const part = (line: PerformanceScore, label: "fraud" | "legitimate") => (all[label] ? line[label] / all[label] : 0);
  const most = Math.max(...shown.flatMap((line) => [part(line, "fraud"), part(line, "legitimate")]));
  const bar = (line: PerformanceScore, label: "fraud" | "legitimate") =>
    line[label] > 0 && <span class={`fill ${label}`} style={{ width: `${(100 * part(line, label)) / most}%` }} />;
  const columns: Column<PerformanceScore>[] = [
    { head: "Score", cell: range },
    { head: "Fraud", cell: ({ fraud }) => count(fraud), number: true },
    { head: "Of all fraud", cell: ({ fraud }) => share(fraud, all.fraud), number: true },
    { head: "Legitimate", cell: ({ legitimate }) => count(legitimate), number: true },
    { head: "Of all legitimate", cell: ({ legitimate }) => share(legitimate, all.legitimate), number: true },
  ];
  return (
    <Card title="Scores by label">
      {shown.length === 0 ? <p class="empty">No event with a score has a label in this window.</p> : (
        <>
          <p class="quiet">A bar is its share of all events with that label: the less the sides overlap, the better scores tell fraud.</p>
          <div class="sides" role="img" aria-label="Scores of labeled events, fraud to the left and legitimate to the right, as in the table below.">
            <p class="ends"><span>Fraud</span><span>Score</span><span>Legitimate</span></p>
            {shown.map((line) => (
              <div key={line.from}>
                <span class="number">{count(line.fraud)}</span>
                <span class="track">{bar(line, "fraud")}</span>
                <span class="label">{range(line)}</span>
                <span class="track">{bar(line, "legitimate")}</span>
                <span>{count(line.legitimate)}</span>
              </div>
            ))}
          </div>
          <button type="button" class="small" aria-expanded={showsTable} onClick={() => setShowsTable(!showsTable)}>{showsTable ? "Hide the table" : "Show as a table"}</button>
          {showsTable && <Table name="Scores by label" columns={columns} rows={shown} keyOf={({ from }) => String(from)} />}
        </>
      )}
    </Card>
  );
}
