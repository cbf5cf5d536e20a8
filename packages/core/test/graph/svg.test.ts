import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyText } from '../../../../test/support/any-text.ts';
import { isLong } from '../../../../test/support/long.ts';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import { drawGraph, type GraphNode } from '../../src/graph/svg.ts';
import { type Box, readBoxes, readCurves, readElements } from './read-svg.ts';

function aNode(id: string, label = 'probe'): GraphNode {
  return { id, label, kind: 'capability' };
}
function aGraph(size: number, before: (index: number) => readonly number[]) {
  return {
    nodes: Array.from({ length: size }, (_, index) => aNode(`s${index}`)),
    edges: Array.from({ length: size }, (_, index) => index).flatMap((index) =>
      before(index).map((other) => ({ from: `s${other}`, to: `s${index}` })),
    ),
  };
}

const many = isLong ? 10_000 : 1_200;

/** Edges from earlier nodes to later ones, in shuffled order of nodes. */
const anyGraph = fc.nat({ max: 30 }).chain((size) =>
  fc
    .record({
      nodes: fc.shuffledSubarray(
        Array.from({ length: size }, (_, index) => index),
        { minLength: size },
      ),
      labels: fc.array(anyText({ maxLength: 60 }), { minLength: size, maxLength: size }),
      kinds: fc.array(fc.constantFrom<GraphNode['kind'][]>('capability', 'pipeline', 'wait', 'review'), {
        minLength: size,
        maxLength: size,
      }),
      pairs: fc.array(fc.tuple(fc.nat({ max: size }), fc.nat({ max: size })), { maxLength: 60 }),
    })
    .map(({ nodes, labels, kinds, pairs }) => ({
      nodes: nodes.map((index): GraphNode => {
        const kind = kinds[index] ?? 'wait';
        return { id: `s${index}`, label: labels[index] ?? '', kind };
      }),
      edges: pairs.flatMap(([a, b]) =>
        a === b ? [] : [{ from: `s${Math.min(a, b)}`, to: `s${Math.max(a, b)}` }],
      ),
    })),
);

function boxesById(svg: string): Map<string, Box> {
  return new Map(readBoxes(svg).map((box) => [box.title.split(':')[0] ?? '', box]));
}

function overlap(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

function middleOf({ top, bottom }: Box): number {
  return (top + bottom) / 2;
}

function expectedCurves(
  boxes: Map<string, Box>,
  edges: readonly { from: string; to: string }[],
): Set<string> {
  return new Set(
    edges.flatMap(({ from, to }) => {
      const [first, last] = [boxes.get(from), boxes.get(to)];
      if (first === undefined || last === undefined) return [];
      return [[first.right, middleOf(first), last.left, middleOf(last)].join(' ')];
    }),
  );
}

describe('the drawing of a graph', () => {
  it('keeps its nodes apart and inside', () => {
    fc.assert(
      fc.property(anyGraph, ({ nodes, edges }) => {
        const svg = drawGraph(nodes, edges);
        const boxes = readBoxes(svg);
        expect(boxes).toHaveLength(nodes.length);
        const [, width, height] = svg.match(/viewBox="0 0 (\d+) (\d+)"/)?.map(Number) ?? [];
        expect(
          boxes.filter((box, index) => boxes.slice(index + 1).some((other) => overlap(box, other))),
        ).toEqual([]);
        const rooms = boxes.map(({ left, top, right, bottom }) =>
          Math.min(left, top, (width ?? 0) - right, (height ?? 0) - bottom),
        );
        expect(Math.min(1, ...rooms)).toBeGreaterThan(0);
      }),
    );
  });

  it('leads every edge from the right of its first node to the left of its last, further right', () => {
    fc.assert(
      fc.property(anyGraph, ({ nodes, edges }) => {
        const svg = drawGraph(nodes, edges);
        const curves = readCurves(svg);
        expect(curves.filter(({ start, end }) => start[0] >= end[0])).toEqual([]);
        expect(new Set(curves.map(({ start, end }) => [...start, ...end].join(' ')))).toEqual(
          expectedCurves(boxesById(svg), edges),
        );
      }),
    );
  });

  it('leads edges around the nodes of the layers between', () => {
    fc.assert(
      fc.property(anyGraph, ({ nodes, edges }) => {
        const svg = drawGraph(nodes, edges);
        const boxes = readBoxes(svg);
        const levels = readCurves(svg)
          .flatMap(({ levels }) => levels)
          .map(({ left, right, y }) => ({ title: '', left, right, top: y - 1, bottom: y + 1 }));
        expect(levels.filter((level) => boxes.some((box) => overlap(box, level)))).toEqual([]);
      }),
    );
    const shortcuts = aGraph(4, (index) => (index > 0 ? [index - 1, 0] : []));
    const skipping = readCurves(drawGraph(shortcuts.nodes, shortcuts.edges));
    expect(skipping.map(({ levels }) => levels.length).sort()).toEqual([0, 0, 0, 1, 2]);
  });

  it('is well-formed XML without scripts, whatever the text', () => {
    fc.assert(
      fc.property(anyGraph, ({ nodes, edges }) => {
        const allowed = ['svg', 'style', 'defs', 'marker', 'path', 'rect', 'g', 'title', 'text'];
        expect(allowed).toEqual(expect.arrayContaining(readElements(drawGraph(nodes, edges))));
      }),
    );
  });

  it('shows the whole text of a node next to its beginning', () => {
    const label = `<script>alert("&")</script>${'x'.repeat(60)}\u0000\ud800`;
    const svg = drawGraph([aNode('a', label)], []);
    expect(readBoxes(svg)[0]?.title).toBe(`a: <script>alert("&")</script>${'x'.repeat(60)}\ufffd\ufffd`);
    expect(svg).toContain('&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;xx…</text>');
  });

  it('untangles what need not cross', () => {
    const rows = 12;
    const { nodes, edges } = aGraph(3 * rows, (index) =>
      index < rows ? [] : [Math.floor(index / rows) * rows - 1 - (index % rows)],
    );
    const curves = readCurves(drawGraph(nodes, edges));
    expect(curves).toHaveLength(2 * rows);
    for (const { start, end } of curves) expect(start[1]).toBe(end[1]);
  });

  it('holds nothing but the ground when there is nothing to draw', () => {
    const svg = drawGraph([], [{ from: 'a', to: 'b' }]);
    expect(readElements(svg).filter((name) => name === 'rect')).toHaveLength(1);
    expect(readBoxes(svg)).toEqual([]);
  });

  it.each([
    ['a chain', aGraph(many, (index) => (index > 0 ? [index - 1] : []))],
    ['a fan', aGraph(many, (index) => (index > 0 ? [0] : []))],
    ['a chain with a step before all', aGraph(many, (index) => (index > 0 ? [index - 1, 0] : []))],
    [
      'a mesh',
      aGraph(many, (index) => [1, 7, 60, 61, 900].map((back) => index - back).filter((i) => i >= 0)),
    ],
  ])('draws %s of thousands of nodes', (_, { nodes, edges }) => {
    const spentMs = countProcessorMs();
    const svg = drawGraph(nodes, edges);
    // Some 20 ms for a thousand; with work that grows with the square, more than a second for them, minutes for ten.
    expect(spentMs()).toBeLessThan(many / 2);
    const boxes = readBoxes(svg);
    expect(boxes).toHaveLength(many);
    expect(new Set(boxes.map(({ left, top }) => `${left} ${top}`)).size).toBe(many);
  });
});
