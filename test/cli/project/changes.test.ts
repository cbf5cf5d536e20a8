import { expect, it } from 'vitest';
import { findChanges } from '../../../src/cli/project/changes.ts';

const wants = (name: string, value = {}) => ({ name, value });
const options = { switches: {}, prune: false };
const actions = (changes: ReturnType<typeof findChanges>) => changes.map(({ action }) => action);

it('names each field that differs, and finds equal objects unchanged', () => {
  const found = [wants('a', { cron: '@daily', labels: { team: 'x' } }), wants('b', { n: 1 })];
  const changes = findChanges(
    [wants('b', { n: 1 }), wants('a', { labels: { team: 'y' }, cron: '@daily' }), wants('c')],
    found,
    options,
  );
  expect(actions(changes)).toEqual(['unchanged', 'change', 'create']);
  expect(changes[1]).toMatchObject({ fields: [{ field: '/labels/team', from: 'x', to: 'y' }] });
});

it('keeps a switch that the file leaves to people, and sets one that it names', () => {
  const found = [wants('a', { paused: true })];
  const switches = { paused: false };
  expect(actions(findChanges([wants('a')], found, { switches, prune: false }))).toEqual(['unchanged']);
  const [named] = findChanges([wants('a', { paused: false })], found, { switches, prune: false });
  expect(named).toMatchObject({ action: 'change', wanted: { value: { paused: false } } });
  const [made] = findChanges([wants('b')], found, { switches, prune: false });
  expect(made).toMatchObject({ action: 'create', wanted: { value: { paused: false } } });
});

it('deletes only when it is asked to, also the last one, and never an object that always exists', () => {
  const found = [wants('a'), wants('b'), wants('b'), { ...wants('day'), isPermanent: true }];
  expect(actions(findChanges([], found, options))).toEqual([]);
  expect(actions(findChanges([], found, { ...options, prune: true }))).toEqual([
    'delete',
    'delete',
    'delete',
  ]);
  expect(actions(findChanges([wants('b')], found, { ...options, prune: true }))).toEqual([
    'unchanged',
    'delete',
    'delete',
  ]);
});
