/** Settings of retries: defaults that fit what is written, and findings where written values exclude each other. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { backoffMs } from '../../src/call/retry.ts';
import type { PipelineDefinition, StepDefinition } from '../../src/contracts/pipeline.ts';
import { checkDefinition } from '../../src/definition/checks/check-definition.ts';
import { resolveStepSettings } from '../../src/definition/step-settings.ts';
import { aDefinition, aStep } from './checks/a-definition.ts';

function settingsOf(step: Partial<StepDefinition>, over: Partial<PipelineDefinition> = {}) {
  const whole = aStep(step);
  return resolveStepSettings(aDefinition({ steps: [whole], ...over }), whole);
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

describe('a default', () => {
  it.each<[step: Partial<StepDefinition>, maxDelayMs: number, totalTimeoutMs: number]>([
    [{}, minute, hour],
    [{ retry: { initial: '5m' } }, 5 * minute, hour],
    [{ retry: { max: 3, initial: '5m' }, timeout: '10s' }, 5 * minute, hour],
    [{ retry: { max: 10, initial: '15m', factor: 1 }, timeout: '10s' }, 15 * minute, 150 * minute + 120_000],
    [
      { retry: { max: 4, initial: '10m', max_delay: '2h' }, timeout: '1m' },
      2 * hour,
      180 * minute + 6 * minute,
    ],
    [{ retry: { max: 100, initial: '1m', factor: 1 }, timeout: '10s' }, minute, 100 * minute + 1_020_000],
    [{ retry: { max: 100, initial: '12h' } }, 12 * hour, 7 * day],
    [{ retry: { max: 10, initial: '1h' }, total_timeout: '2h' }, hour, 2 * hour],
    [{ timeout: '30m' }, minute, 150 * minute + 8_400],
    [{ timeout: '30m', retry: { invalid_output: 4 } }, minute, 270 * minute + 8_400],
  ])('fits %j', (step, maxDelayMs, totalTimeoutMs) => {
    const { retry, totalTimeoutMs: total } = settingsOf(step);
    expect([retry.maxDelayMs, total]).toEqual([maxDelayMs, totalTimeoutMs]);
  });

  it('leaves time for each attempt and each pause', () => {
    const ms = fc.integer({ min: 1, max: 2 * hour }).map((length) => `${length}ms`);
    const policy = fc.record(
      {
        max: fc.nat({ max: 20 }),
        initial: ms,
        factor: fc.double({ min: 1, max: 10, noNaN: true }),
        max_delay: ms,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(
        policy,
        ms,
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        (retry, timeout, random) => {
          const { retry: resolved, timeoutMs, totalTimeoutMs } = settingsOf({ retry, timeout });
          if (retry.max_delay === undefined)
            expect(resolved.maxDelayMs).toBeGreaterThanOrEqual(resolved.initialMs);
          let needed = timeoutMs;
          for (let failures = 1; failures <= resolved.max; failures++)
            needed += backoffMs(resolved, failures, random.next().value ?? 0) + timeoutMs;
          expect(totalTimeoutMs).toBeGreaterThanOrEqual(Math.min(needed, 7 * day));
          expect(totalTimeoutMs).toBeGreaterThanOrEqual(hour);
        },
      ),
      { numRuns: runs(300) },
    );
  });
});

const where = '/steps/0/retry';
const once = 'max is 0, so the call is sent once; invalid_output 2 would send it again';

it.each([
  [{ invalid_output: 3 }, {}, 3],
  [{}, { invalid_output: 3 }, 3],
  [{ invalid_output: 0 }, { invalid_output: 3 }, 0],
  [{ max: 0 }, { invalid_output: 3 }, 0],
  [{}, {}, 0],
])('a step with %j, and %j by default, asks again for a wrong answer up to %i times', (own, over, times) => {
  expect(settingsOf({ retry: own }, { defaults: { retry: over } }).retry.invalidOutput).toBe(times);
});

it.each<[step: Partial<StepDefinition>, found: string[], over?: Partial<PipelineDefinition>]>([
  [{ retry: { initial: '5m' } }, []],
  [{ retry: { initial: '1m', max_delay: '1m' }, total_timeout: '4m' }, []],
  [
    { retry: { initial: '5m', max_delay: '1m' } },
    [`error retry_conflict ${where}/initial initial 5m is longer than max_delay 1m`],
  ],
  [{ retry: { max: 0, invalid_output: 2 } }, [`error retry_conflict ${where}/invalid_output ${once}`]],
  [
    {},
    [`error retry_conflict /defaults/retry/invalid_output ${once}`],
    { defaults: { retry: { max: 0, invalid_output: 2 } } },
  ],
  [
    { retry: { invalid_output: 2 } },
    [`warning retry_conflict ${where}/invalid_output ${once}`],
    { defaults: { retry: { max: 0 } } },
  ],
  [{ retry: { max: 0 } }, [], { defaults: { retry: { invalid_output: 2 } } }],
  [{ retry: { max: 0, invalid_output: 0 } }, []],
  [
    { retry: { initial: '61s', max_delay: 'PT1M' } },
    [`error retry_conflict ${where}/initial initial 61s is longer than max_delay PT1M`],
  ],
  [
    {},
    ['error retry_conflict /defaults/retry/initial initial 2h is longer than max_delay 1h'],
    { defaults: { retry: { initial: '2h', max_delay: '1h' } } },
  ],
  [
    { retry: { initial: '5m' } },
    [`warning retry_conflict ${where}/initial initial 5m is longer than max_delay 1m`],
    { defaults: { retry: { max_delay: '1m' } } },
  ],
  [
    { retry: { max_delay: '1m' } },
    [`warning retry_conflict ${where}/max_delay initial 5m is longer than max_delay 1m`],
    { defaults: { retry: { initial: '5m' } } },
  ],
  [
    { retry: { initial: '20m' }, total_timeout: '10m' },
    [
      `warning retry_unreachable ${where}/initial no retry follows a pause: initial is 20m, and total_timeout is 10m`,
    ],
  ],
  [
    { total_timeout: '1h' },
    [
      'warning retry_unreachable /steps/0/total_timeout no retry follows a pause: initial is 1h, and total_timeout is 1h',
    ],
    { defaults: { retry: { initial: '1h' } } },
  ],
  [{ retry: { max: 0, initial: '20m' }, total_timeout: '10m' }, []],
  [
    { retry: { max: 10, initial: '15m', factor: 1 }, total_timeout: '1h' },
    [
      `warning retry_unreachable ${where} 3 of the 10 pauses before retries fit: all take 2 h 30 min, and total_timeout is 1h`,
    ],
  ],
  [
    { retry: { max: 5, initial: '10s', factor: 3, max_delay: '1h' }, total_timeout: '5m' },
    [
      `warning retry_unreachable ${where} 3 of the 5 pauses before retries fit: all take 20 min 10 s, and total_timeout is 5m`,
    ],
  ],
  [
    { retry: { max: 100, initial: '12h' } },
    [
      `warning retry_unreachable ${where} 13 of the 100 pauses before retries fit: all take 50 d, and total_timeout is 7 d`,
    ],
  ],
  [
    { retry: { initial: '2h' } },
    [
      `warning retry_unreachable ${where}/initial no retry follows a pause: initial is 2h, and the timeout of the run is 1h`,
    ],
    { timeout: '1h' },
  ],
  [
    { timeout: '5m', total_timeout: '1m' },
    [
      'warning timeout_unreachable /steps/0/total_timeout the total time of the step, 1m, is shorter than the timeout of one attempt, 5m',
    ],
  ],
  [
    { timeout: '2h' },
    ['warning timeout_unreachable /steps/0/timeout the run ends after 1h, before timeout 2h'],
    { timeout: '1h' },
  ],
  [
    { total_timeout: '2h' },
    ['warning timeout_unreachable /steps/0/total_timeout the run ends after 1h, before total_timeout 2h'],
    { timeout: '1h' },
  ],
])('%j has the findings %j', (step, found, over) => {
  const definition = aDefinition({ steps: [aStep(step)], ...over });
  const findings = checkDefinition(definition, { knownCapabilities: null, strict: false });
  expect(
    findings.map(({ severity, code, pointer, message }) => `${severity} ${code} ${pointer} ${message}`),
  ).toEqual(found);
});

it('a wait that outlasts the run is reported', () => {
  const steps = [{ id: 'a', wait: '2h' }];
  const definition = aDefinition({ steps, timeout: '1h' });
  expect(checkDefinition(definition, { knownCapabilities: null, strict: false })).toMatchObject([
    { severity: 'warning', code: 'timeout_unreachable', pointer: '/steps/0/wait' },
  ]);
});
