/** Where the nodes of a small graph are drawn: the one in the middle, then those of each step on an ellipse of their own. */

export interface Placed {
  x: number;
  y: number;
}

export interface Node {
  kind: string;
  id: string;
  steps: number;
}

export interface Edge {
  visitor_id: string;
  account_id: string;
}

/** More nodes than these are a table. */
export const MAX_NODES = 50;
/** How much wider than high: labels stand side by side. */
const WIDE = 1.8;
/** Of nodes of the second step, as long as there is room: radians. */
const GAP = 0.5;
/** Around the outermost nodes, for their labels. */
const MARGIN = { x: 62, above: 20, below: 38 };

export const keyOf = ({ kind, id }: Pick<Node, "kind" | "id">): string => `${kind} ${id}`;

const between = (least: number, value: number, most: number): number => Math.min(most, Math.max(least, value));

/** Half the height of the ellipse of each step, by how many nodes it has. */
function radii(counts: number[]): number[] {
  const found: number[] = [];
  counts.forEach((number, step) => found.push(step === 0 ? 0 : step === 1 ? between(70, 12 * number, 150) : found[step - 1]! + (number > 0 ? between(75, 6 * number, 135) : 0)));
  return found;
}

/** Angles as close to the wanted ones, which ascend, as a distance allows; evenly around where they do not fit into a turn. */
export function spread(wanted: number[]): number[] {
  const gap = Math.min(GAP, (2 * Math.PI) / wanted.length);
  const blocks: { sum: number; size: number }[] = [];
  wanted.forEach((angle, at) => {
    let block = { sum: angle - at * gap, size: 1 };
    for (let last = blocks.at(-1); last && last.sum / last.size >= block.sum / block.size; last = blocks.at(-1)) {
      block = { sum: last.sum + block.sum, size: last.size + block.size };
      blocks.pop();
    }
    blocks.push(block);
  });
  const found = blocks.flatMap(({ sum, size }) => new Array<number>(size).fill(sum / size)).map((angle, at) => angle + at * gap);
  if (found.length === 0 || found.at(-1)! - found[0]! <= 2 * Math.PI - gap + 1e-9) return found;
  const turn = wanted.reduce((sum, angle, at) => sum + angle - (2 * Math.PI * at) / wanted.length, 0) / wanted.length;
  return wanted.map((_, at) => (2 * Math.PI * at) / wanted.length + turn);
}

/** Place by key, and the box around all of them, as high as they need. Those of a later step lie close to the ones before that they are linked to. */
export function layout(nodes: Node[], edges: Edge[]): { places: Map<string, Placed>; box: { x: number; y: number; width: number; height: number } } {
  const angles = new Map<string, number>();
  const first = nodes.filter(({ steps }) => steps === 1);
  first.forEach((node, at) => angles.set(keyOf(node), (2 * Math.PI * at) / first.length));
  const near = (node: Node): number => {
    const linked = edges.filter((edge) => (node.kind === "visitor" ? edge.visitor_id : edge.account_id) === node.id);
    const known = linked.map((edge) => angles.get(node.kind === "visitor" ? `account ${edge.account_id}` : `visitor ${edge.visitor_id}`)).filter((angle) => angle !== undefined);
    if (known.length === 0) return 0;
    return Math.atan2(known.reduce((sum, angle) => sum + Math.sin(angle), 0), known.reduce((sum, angle) => sum + Math.cos(angle), 0));
  };
  const farthest = Math.max(...nodes.map(({ steps }) => steps));
  for (let step = 2; step <= farthest; step += 1) {
    const of = nodes.filter(({ steps }) => steps === step).map((node) => ({ node, wanted: near(node) })).sort((one, other) => one.wanted - other.wanted);
    spread(of.map(({ wanted }) => wanted)).forEach((angle, at) => angles.set(keyOf(of[at]!.node), angle));
  }
  const heights = radii(Array.from({ length: farthest + 1 }, (_, step) => nodes.filter(({ steps }) => steps === step).length));
  const places = new Map(nodes.map((node) => {
    const radius = heights[node.steps] ?? 0, angle = angles.get(keyOf(node)) ?? 0;
    return [keyOf(node), { x: WIDE * radius * Math.cos(angle), y: radius * Math.sin(angle) }];
  }));
  const all = [...places.values()];
  const x = Math.min(...all.map((place) => place.x)) - MARGIN.x, y = Math.min(...all.map((place) => place.y)) - MARGIN.above;
  const width = Math.max(...all.map((place) => place.x)) + MARGIN.x - x, height = Math.max(...all.map((place) => place.y)) + MARGIN.below - y;
  return { places, box: { x, y, width, height } };
}

const LONGEST = 16;

/** An account id as a label of the graph. Of a mail address its local part is what tells accounts apart: of that, both ends stay. */
export function shortened(id: string): string {
  if (id.length <= LONGEST) return id;
  const local = [...id.split("@")[0]!];
  return local.length < LONGEST ? `${local.join("")}@…` : `${local.slice(0, 8).join("")}…${local.slice(-6).join("")}`;
}
