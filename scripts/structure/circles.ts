/** Circles of a graph: Tarjan's strongly connected components of more than one node, and nodes with an arrow to themselves. */

export type Graph = ReadonlyMap<string, ReadonlySet<string>>;

interface Visit {
  readonly index: number;
  /** The lowest index on the stack that the node leads to. */
  low: number;
  isOpen: boolean;
}

/** @returns the nodes of each circle in order, the largest circle first */
export function findCircles(graph: Graph): string[][] {
  const visits = new Map<string, Visit>();
  const stack: string[] = [];
  const circles: string[][] = [];

  const enter = (node: string): Visit => {
    const visit: Visit = { index: visits.size, low: visits.size, isOpen: true };
    visits.set(node, visit);
    stack.push(node);
    for (const next of graph.get(node) ?? []) {
      const other = visits.get(next);
      if (other === undefined) visit.low = Math.min(visit.low, enter(next).low);
      else if (other.isOpen) visit.low = Math.min(visit.low, other.index);
    }
    if (visit.low === visit.index) close(node);
    return visit;
  };

  const close = (root: string): void => {
    const members = stack.splice(stack.lastIndexOf(root));
    for (const member of members) (visits.get(member) as Visit).isOpen = false;
    if (members.length > 1 || graph.get(root)?.has(root) === true) circles.push(members.sort());
  };

  for (const node of graph.keys()) if (!visits.has(node)) enter(node);
  return circles.sort((a, b) => b.length - a.length);
}
