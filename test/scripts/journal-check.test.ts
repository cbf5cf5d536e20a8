/** The checker of `npm run faults -- cluster` finds each kind of breach. */
import { expect, test } from 'vitest';
import { type Dag, modelOf } from '../../scripts/faults/dag.ts';
import type { Line } from '../../scripts/faults/fleet.ts';
import { checkJournal } from '../../scripts/faults/journal-check.ts';

const dag: Dag = [
  { id: 'a', after: [] },
  { id: 'b', after: ['a'] },
];
const model = modelOf(dag, 7);

function line(step: string, rest: Partial<Line>): Line {
  return { at: 0, port: 1, key: step, number: 1, n: 7, step, kind: 'begin', ...rest };
}

function end(step: string, h = model.get(step) ?? ''): Line {
  return line(step, { kind: 'end', status: 200, output: { h } });
}

test('a journal of every step, each after what it depends on, holds', () => {
  const lines = [line('a', {}), end('a'), line('b', {}), end('b')];
  expect(checkJournal(lines, dag, [7])).toEqual({
    figures: { calls: 2, 'steps called twice': 0 },
    breaches: [],
  });
});

test('a step that began before the one that it depends on was answered is found', () => {
  const lines = [line('a', {}), line('b', {}), end('a'), end('b')];
  expect(checkJournal(lines, dag, [7]).breaches).toEqual(['step b of run 7 began before a ended']);
});

test('a step that depends on one that was cut off, and not called again, is found', () => {
  const cut = line('a', { kind: 'end', status: null, output: { h: model.get('a') ?? '' } });
  expect(checkJournal([line('a', {}), cut, line('b', {}), end('b')], dag, [7]).breaches).toHaveLength(1);
});

test('an output that the graph does not give is found', () => {
  const lines = [line('a', {}), end('a'), line('b', {}), end('b', 'another')];
  expect(checkJournal(lines, dag, [7]).breaches).toEqual(['step b of run 7 worked out another']);
});

test('a step that was called again is counted', () => {
  const lines = [line('a', {}), line('a', { number: 2 }), end('a'), line('b', {}), end('b')];
  expect(checkJournal(lines, dag, [7])).toMatchObject({
    figures: { calls: 3, 'steps called twice': 1 },
    breaches: [],
  });
});
