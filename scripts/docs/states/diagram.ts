/** State diagrams as mermaid text, which GitHub and most editors draw. */

export interface Arrow {
  readonly from: string;
  readonly to: string;
  /** The event; empty for none. */
  readonly label: string;
}

/** States that share a frame. Equal arrows that enter all of them, or leave all of them, become one, at the frame. */
export interface Frame {
  readonly name: string;
  readonly members: readonly string[];
}

/** Begin and end of a diagram. */
export const outside = '[*]';

const widest = 32;

/** Names with commas, in lines of a readable width. */
export function joinNames(names: readonly string[]): string {
  const lines: string[] = [];
  for (const name of names) {
    const last = lines.at(-1);
    if (last !== undefined && `${last}, ${name}`.length <= widest)
      lines[lines.length - 1] = `${last}, ${name}`;
    else lines.push(name);
  }
  return lines.join(',<br/>');
}

/** In the order of their first members. */
export function groupBy<T>(list: readonly T[], keyOf: (one: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const one of list) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]);
  return [...groups.values()];
}

/** @param side the end of an arrow that lies in the frame */
function joinAtFrame(arrows: readonly Arrow[], { name, members }: Frame, side: 'from' | 'to'): Arrow[] {
  const other = side === 'from' ? 'to' : 'from';
  const isCrossing = (arrow: Arrow): boolean =>
    members.includes(arrow[side]) && !members.includes(arrow[other]);
  const groups = groupBy(arrows, (arrow) =>
    [arrow.label, arrow[other], isCrossing(arrow) ? name : arrow[side]].join(' '),
  );
  return groups.flatMap((group) => {
    const crossing = new Set(group.map((arrow) => arrow[side]));
    const [first] = group;
    return first !== undefined && members.every((member) => crossing.has(member))
      ? [{ ...first, [side]: name }]
      : group;
  });
}

/** Parallel arrows become one, with all of their labels. */
function drawArrows(arrows: readonly Arrow[]): string[] {
  return groupBy(arrows, ({ from, to }) => `${from} ${to}`).map((group) => {
    const [{ from, to } = { from: outside, to: outside }] = group;
    const labels = [...new Set(group.map(({ label }) => label))].filter((label) => label !== '');
    return `  ${from} --> ${to}${labels.length === 0 ? '' : `: ${joinNames(labels)}`}`;
  });
}

/** Leaves out arrows of a state to itself. */
export function drawStates(arrows: readonly Arrow[], frame?: Frame): string {
  const moves = arrows.filter(({ from, to }) => from !== to);
  const framed =
    frame === undefined
      ? []
      : [`  state ${frame.name} {`, ...frame.members.map((member) => `    ${member}`), '  }'];
  const drawn =
    frame === undefined
      ? drawArrows(moves)
      : drawArrows(joinAtFrame(joinAtFrame(moves, frame, 'to'), frame, 'from'));
  return ['```mermaid', 'stateDiagram-v2', ...framed, ...drawn, '```'].join('\n');
}
