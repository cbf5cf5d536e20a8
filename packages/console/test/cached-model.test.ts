import { expect, it } from 'vitest';
import { aCachedAttempt } from '../../../test/support/a-cached-attempt.ts';
import { describeSaved } from '../src/pages/costs/model.ts';
import { describeDelivery, describeOrigin, toneOfAttempt } from '../src/pages/run/drawer/attempts-model.ts';
import { describeCached } from '../src/pages/run/drawer/result-model.ts';
import { toneOf } from '../src/pages/run/log-model.ts';
import { formatUsd } from '../src/shared/format.ts';

const attempt = aCachedAttempt({ run_id: 'run_1', step_id: 'cover' });

it('names the step whose result was used, and its cost', () => {
  expect(describeDelivery(attempt)).toBe('cached: the result of an equal call was taken');
  expect(describeOrigin(attempt)).toBe(`made by step cover[3], saved ${formatUsd(0.25)}`);
  expect(toneOfAttempt(attempt)).toBe('done');
  const { cached_from: _, ...called } = attempt;
  expect(describeOrigin(called)).toBeNull();
});

it('shows the savings of today, and no line for none', () => {
  expect(describeSaved({ today_saved_usd: 0.25 })).toBe(`saved today ${formatUsd(0.25)}`);
  expect(describeSaved({ today_saved_usd: 0 })).toBeNull();
});

it('a line of the log about it is a good one', () => {
  const event = { seq: 1, at: attempt.started_at, run_id: 'run_1', type: 'step.cached', data: {} } as const;
  expect(toneOf(event)).toBe('done');
});

it('a step shows how many of its results came from the cache', () => {
  expect(describeCached({})).toBeNull();
  expect(describeCached({ cached: 1 })).toBe('the stored result of an equal call; no instance was called');
  expect(describeCached({ cached: 2, items: { succeeded: 3 } })).toMatch(/^2 of its items/);
});
