/** A list that only grows, read by its newest page. */
import { expect, test } from 'vitest';
import { findGone } from '../../scripts/faults/watch-lists.ts';

function pageOf(...ids: readonly string[]) {
  return { items: ids.map((run_id) => ({ run_id })) };
}

test('a run that is missing between others was listed before and is gone', () => {
  expect(findGone(new Set(['run_2', 'run_3']), pageOf('run_4', 'run_3', 'run_1'))).toEqual(['run_2']);
});

test('a run older than the page is not missed', () => {
  expect(findGone(new Set(['run_1', 'run_2']), pageOf('run_3', 'run_2'))).toEqual([]);
});
