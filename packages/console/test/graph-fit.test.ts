/** A graph is shown whole as long as the names of its steps stay readable. */
import { describe, expect, test } from 'vitest';
import {
  fitGraph,
  fitWhole,
  type GraphLayout,
  heightFor,
  layoutGraph,
  nodeHeight,
  nodeWidth,
} from '../src/graph/layout.ts';

/** @param columns steps one after another @param rows as many in each column */
function aGraph(columns: number, rows = 1): GraphLayout {
  const ids = Array.from({ length: columns * rows }, (_, index) => `s${index}`);
  const edges = ids.slice(rows).map((to, index) => ({ from: ids[index] ?? '', to }));
  return layoutGraph(ids, edges);
}

function isInside(layout: GraphLayout, box: { width: number; height: number }): boolean {
  const { x, y, zoom } = fitGraph(layout, box);
  const right = x + layout.width * zoom;
  const bottom = y + layout.height * zoom;
  return x >= 0 && y >= 0 && right <= box.width - 40 && bottom <= box.height;
}

describe('a graph', () => {
  test.each([
    [1, 1, 300],
    [3, 1, 700],
    [7, 2, 1_140],
    [8, 2, 1_024],
    [7, 2, 1_700],
    [4, 3, 900],
  ])('of %i columns and %i rows is whole in %i px, and not under the buttons', (columns, rows, width) => {
    const layout = aGraph(columns, rows);
    expect(fitGraph(layout, { width, height: 420 }).isWhole).toBe(true);
    expect(isInside(layout, { width, height: 420 })).toBe(true);
  });

  test('is not enlarged', () => {
    expect(fitGraph(aGraph(1), { width: 2_000, height: 900 }).zoom).toBe(1);
  });

  test('of many columns shows its start in a readable size, and all of it on request', () => {
    const layout = aGraph(30);
    const box = { width: 1_140, height: 420 };
    expect(fitGraph(layout, box)).toMatchObject({ isWhole: false, x: 24 });
    expect(fitGraph(layout, box).zoom).toBeGreaterThanOrEqual(0.4);
    expect(fitWhole(layout, box).zoom * layout.width).toBeLessThan(box.width);
  });

  test.each(['s0', 's11', 's29'])('that is not whole keeps the selected step %s in view', (selected) => {
    const layout = aGraph(30);
    const box = { width: 735, height: 300 };
    const { x, zoom } = fitGraph(layout, box, { selected });
    const left = x + (layout.places.get(selected)?.x ?? 0) * zoom;
    expect(left).toBeGreaterThanOrEqual(0);
    expect(left + nodeWidth * zoom).toBeLessThanOrEqual(box.width - 40);
  });

  test('of thousands of steps is an overview', () => {
    expect(fitGraph(aGraph(40, 50), { width: 1_140, height: 420 }, { isOverview: true }).isWhole).toBe(true);
  });

  test('needs no more height than its rows', () => {
    expect(heightFor(aGraph(3), 1_140)).toBeLessThan(nodeHeight + 100);
    expect(heightFor(aGraph(7, 3), 1_140)).toBeLessThan(heightFor(aGraph(3, 3), 1_140));
  });

  test('fits into a box without a size', () => {
    expect(Number.isFinite(fitGraph(aGraph(2), { width: 0, height: 0 }).zoom)).toBe(true);
  });
});
