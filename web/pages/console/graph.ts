/** Where the nodes of a small graph are drawn: the one in the middle, then those of each step on a circle of their own. */

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
export const MOST_NODES = 50;
export const SIZE = 640;
export const RADII = [0, 150, 285];

export const keyOf = ({ kind, id }: Pick<Node, "kind" | "id">): string => `${kind} ${id}`;

/** Place by key. Those of the second step lie close to the one of the first that they are linked to. */
export function layout(nodes: Node[], edges: Edge[]): Map<string, Placed> {
  const angles = new Map<string, number>();
  const first = nodes.filter(({ steps }) => steps === 1);
  first.forEach((node, at) => angles.set(keyOf(node), (2 * Math.PI * at) / first.length - Math.PI / 2));
  const near = (node: Node): number => {
    const linked = edges.filter((edge) => (node.kind === "visitor" ? edge.visitor_id : edge.account_id) === node.id);
    const known = linked.map((edge) => angles.get(node.kind === "visitor" ? `account ${edge.account_id}` : `visitor ${edge.visitor_id}`)).filter((angle) => angle !== undefined);
    if (known.length === 0) return 0;
    return Math.atan2(known.reduce((sum, angle) => sum + Math.sin(angle), 0), known.reduce((sum, angle) => sum + Math.cos(angle), 0));
  };
  const second = nodes.filter(({ steps }) => steps === 2).map((node) => ({ node, wanted: near(node) })).sort((one, other) => one.wanted - other.wanted);
  // Even distances in the order of the wanted angles, turned so that the sum of what they differ by is least.
  const turn = second.reduce((sum, { wanted }, at) => sum + wanted - (2 * Math.PI * at) / second.length, 0) / (second.length || 1);
  second.forEach(({ node }, at) => angles.set(keyOf(node), (2 * Math.PI * at) / second.length + turn));
  return new Map(nodes.map((node) => {
    const radius = RADII[node.steps] ?? 0, angle = angles.get(keyOf(node)) ?? 0;
    return [keyOf(node), { x: SIZE / 2 + radius * Math.cos(angle), y: SIZE / 2 + radius * Math.sin(angle) }];
  }));
}
