/** What links accounts and visitors, step by step: as a small graph, and as a table that says the same. */
/** @jsxImportSource preact */
import { hueOf } from "../parts/identity.js";
import { keyOf, layout, MAX_NODES, shortened } from "./graph.js";
import { count, many } from "./format.js";
import { Ring } from "./ring.js";
import { useConsole, useLink, useLoad } from "./state.js";
import { AccountLink, Button, Card, type Column, Show, Table, Time, useSelection, VisitorLink } from "./ui.js";
import type { Links as Found } from "./wire.js";

const COLUMNS: Column<Found["links"][number]>[] = [
  { head: "Visitor", cell: (row) => <VisitorLink id={row.visitor_id} short /> },
  { head: "Account", cell: (row) => <AccountLink id={row.account_id} /> },
  { head: "Events", cell: (row) => count(row.events), number: true },
  { head: "First seen", cell: (row) => <Time at={row.first_seen_at} /> },
  { head: "Last seen", cell: (row) => <Time at={row.last_seen_at} /> },
];

export function Links(middle: { visitor: string } | { account: string }) {
  const { api, environment } = useConsole();
  const loaded = useLoad((signal) => api.get<Found>("links", { environment, ...middle }, signal), [environment, JSON.stringify(middle)]);
  const isVisitor = "visitor" in middle;
  const links = loaded.value?.links ?? [];
  const selection = useSelection(links.map(keyOfLink));
  return (
    <Card title={isVisitor ? "Accounts of this visitor, and who shares them" : "Visitors of this account, and their other accounts"}>
      <Show of={loaded}>{(found) => found.links.length === 0
        ? <p class="quiet">{isVisitor ? "No event of this visitor names an account." : "No visitor that can be recognized acted for this account."}</p>
        : <>
            <p class="quiet">{summary(found)}{!found.is_complete && " There are more than are shown here."}</p>
            {found.is_complete && found.nodes.length <= MAX_NODES && <Graph found={found} />}
            <p class="buttons"><Button judge kind="small" onClick={() => selection.choose(new Set(links.map(keyOfLink)))}>Select all</Button></p>
            <Ring links={links.filter((one) => selection.chosen.has(keyOfLink(one)))} onNone={() => selection.choose(new Set())} />
            <Table name="Links" columns={COLUMNS} rows={found.links} keyOf={keyOfLink} selection={selection} />
          </>
      }</Show>
    </Card>
  );
}

const keyOfLink = (row: Found["links"][number]): string => `${row.visitor_id} ${row.account_id}`;

/** "2 visitors and 5 accounts, up to 4 steps away." */
export function summary({ nodes }: Found): string {
  const number = (kind: string) => nodes.filter((node) => node.kind === kind).length;
  const farthest = Math.max(...nodes.map(({ steps }) => steps));
  return `${many(number("visitor"), "visitor")} and ${many(number("account"), "account")}, up to ${many(farthest, "step")} away.`;
}

/** A graph wider than the window is scrolled to the one that it is about. */
const showMiddle = (region: HTMLElement | null): void => region?.scrollBy(region.querySelector(".middle")!.getBoundingClientRect().left - innerWidth / 2, 0);

function Graph({ found: { nodes, links } }: { found: Found }) {
  const link = useLink();
  const { places, box } = layout(nodes, links);
  const at = (kind: string, id: string) => places.get(keyOf({ kind, id }));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Graph of links" ref={showMiddle}>
    <svg class="graph" viewBox={`${box.x} ${box.y} ${box.width} ${box.height}`} style={{ "--width": String(box.width) }} role="group" aria-label="Links. The table below says the same.">
      {links.map((edge) => {
        const from = at("visitor", edge.visitor_id), to = at("account", edge.account_id);
        return from && to && <line key={`${edge.visitor_id} ${edge.account_id}`} x1={from.x} y1={from.y} x2={to.x} y2={to.y} stroke-width={Math.min(1 + edge.events / 4, 5)} />;
      })}
      {nodes.map((node) => {
        const { x, y } = places.get(keyOf(node))!;
        const label = node.kind === "visitor" ? `${node.id.slice(0, 8)}…` : shortened(node.id);
        return (
          <a key={keyOf(node)} href={link(node.kind === "visitor" ? "visitors" : "accounts", node.id)} aria-label={`${node.kind === "visitor" ? "Visitor" : "Account"} ${label}`} class={node.steps === 0 ? "middle" : ""}>
            {node.kind === "visitor"
              ? <circle cx={x} cy={y} r={node.steps === 0 ? 14 : 9} style={{ "--hue": String(hueOf(node.id)) }} />
              : <rect x={x - (node.steps === 0 ? 13 : 8)} y={y - (node.steps === 0 ? 13 : 8)} width={node.steps === 0 ? 26 : 16} height={node.steps === 0 ? 26 : 16} rx="3" />}
            <title>{node.id}</title>
            <text x={x} y={y + (node.steps === 0 ? 30 : 23)} text-anchor="middle">{label}</text>
          </a>
        );
      })}
    </svg>
    </div>
  );
}
