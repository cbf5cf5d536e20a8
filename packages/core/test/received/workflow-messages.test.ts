/** Anybody who may use Temporal can send a workflow anything: it is one of Capstan's messages, or it changes nothing. */
import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newId } from '../../../../src/parts/ids.ts';
import {
  findLadderFault,
  findRunFault,
  findScheduledFault,
  isLadderPosition,
  isStepResult,
  isSubmission,
  newerEngineOf,
  readControl,
  readRested,
  readReviewed,
  readWoken,
} from '../../src/received/workflow-messages.ts';
import { driveRun } from '../../src/run/drive.ts';
import { engineVersion, type RunPipelineInput } from '../../src/workflow-payloads.ts';
import { aPlan } from '../run/a-plan.ts';

/** Every JSON value, and a signal without input. */
const anything = fc.oneof(
  { weight: 1, arbitrary: fc.constant(undefined) },
  { weight: 20, arbitrary: fc.jsonValue() },
);

const nonsense = [
  undefined,
  null,
  '',
  'x',
  'NaN',
  0,
  -1,
  5,
  1e308,
  true,
  [],
  [[]],
  {},
  { x: 1 },
  [{ version: 1 }],
];

describe('a signal', () => {
  it('that is nonsense is none of ours', () => {
    for (const value of nonsense) {
      expect([
        value,
        readControl(value, 0),
        readReviewed(value),
        readWoken(value),
        readRested(value),
      ]).toEqual([value, null, null, null, null]);
    }
  });

  it('with any content is read as far as it is valid, or ignored', () => {
    const control = fc.record(
      { version: anything, paused: anything, budget_version: anything },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(anything, control), fc.nat(20_000), (value, known) => {
        const read = readControl(value, known);
        if (read === null) return;
        expect(value).toMatchObject(read);
        expect(read.version).toBeGreaterThan(known);
      }),
    );
    fc.assert(
      fc.property(anything, (value) => {
        for (const read of [readReviewed(value), readWoken(value), readRested(value)])
          if (read !== null) expect(value).toEqual(read);
      }),
    );
  });

  it.each([1e308, 'NaN', '3', 2.5, -1, null, Number.MAX_SAFE_INTEGER, 2 ** 31, 2 ** 53, [3], { is: 3 }])(
    'control with the version %j does not hide the row’s next one',
    (version) => {
      const known = 3;
      expect(readControl({ version, paused: true, budget_version: 0 }, known)).toBeNull();
    },
  );

  it('control that is the row’s is read, without what was added to it', () => {
    const row = { version: 4, paused: true, budget_version: 4 };
    expect(readControl({ ...row, more: 1 }, 3)).toEqual(row);
    expect(readControl(row, 4)).toBeNull();
    expect(readControl({ ...row, budget_version: 5 }, 3)).toBeNull();
  });

  it('reviewed and woken are read as Capstan sends them', () => {
    const reviewed = { review_id: newId('review'), version: 2 };
    expect(readReviewed(reviewed)).toEqual(reviewed);
    for (const woken of [
      { step_id: 'a', item: 0 },
      { step_id: '', item: 0 },
    ])
      expect(readWoken(woken)).toEqual(woken);
  });

  it.each([
    [{ review_id: 5, version: 1 }],
    [{ review_id: `rev_${'x'.repeat(100)}`, version: 1 }],
    [{ review_id: '__proto__', version: 1 }],
    [{ review_id: 'rev_1', version: '1' }],
    [{ review_id: 'rev_1' }],
  ])('reviewed %j is none of ours', (value) => {
    expect(readReviewed(value)).toBeNull();
  });

  it.each([
    [{ step_id: 'a' }],
    [{ step_id: 'a', item: '0' }],
    [{ step_id: ['a'], item: 0 }],
    [{ step_id: 'a', item: -1 }],
  ])('woken %j is none of ours', (value) => {
    expect(readWoken(value)).toBeNull();
  });
});

const input: RunPipelineInput = {
  engine_version: engineVersion,
  run_id: 'run_1',
  project_id: 'prj_1',
  pipeline: 'one',
  version: '1',
  plan: aPlan(['a', 'b a', 'c a', 'd b c']),
  timeout_ms: null,
  heartbeat_timeout_ms: 30_000,
  has_search_attributes: true,
  run_url: 'http://run',
  dispatch_reasons: ['a: short'],
  snapshot: {
    machine: {
      steps: 'srwp',
      fans: [{ step: 1, items: 'sw', next: 2, failed: 0, firstFailure: null, isStopping: false }],
      waits: [{ step: 2, item: 0, wait: { awaiting: 'review', until: 5, ref: { review_id: 'rev_1' } } }],
      woken: [],
      isPaused: false,
    },
    deadline_ms: 5_000,
    control: { version: 1, paused: false, budget_version: 0 },
    early_wakes: ['c/0'],
    seen_versions: { rev_1: 2 },
    has_waited: true,
  },
};

type Path = readonly (string | number)[];

/** Every place in a JSON value, the whole first. */
function placesOf(value: unknown, at: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([key, inner]) => placesOf(inner, [...at, key]))];
}

function withValueAt(value: unknown, [key, ...rest]: Path, put: unknown): unknown {
  if (key === undefined) return put;
  const copy = Array.isArray(value) ? [...value] : { ...(value as object) };
  return Object.assign(copy, { [key]: withValueAt((value as Record<string, unknown>)[key], rest, put) });
}

/** The inputs of all workflows whose histories are committed. */
function recordedInputs(): { readonly type: string; readonly input: unknown }[] {
  const folder = new URL('../../../../test/histories/', import.meta.url);
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => {
      const { events } = JSON.parse(readFileSync(new URL(name, folder), 'utf8'));
      const { workflowType, input: args } = events[0].workflowExecutionStartedEventAttributes;
      return {
        type: workflowType.name,
        input: JSON.parse(Buffer.from(args.payloads[0].data, 'base64').toString()),
      };
    });
}

const findFault = { runPipeline: findRunFault, escalate: findLadderFault, scheduledRun: findScheduledFault };

describe('an input', () => {
  it('of every recorded workflow has no fault', () => {
    const recorded = recordedInputs();
    expect(new Set(recorded.map(({ type }) => type))).toEqual(new Set(['runPipeline', 'escalate']));
    for (const { type, input: given } of recorded) {
      expect(findFault[type as keyof typeof findFault](given)).toBeNull();
    }
  });

  it('that is nonsense has a fault for each workflow', () => {
    for (const find of Object.values(findFault)) {
      for (const value of nonsense) expect(find(value)).toMatch(/^input[. ]/);
      fc.assert(fc.property(anything, (value) => void expect(find(value)).not.toBeNull()));
    }
  });

  it('of a run whose one value is anything has a fault, or its run begins', () => {
    expect(findRunFault(input)).toBeNull();
    const places = placesOf(input);
    fc.assert(
      fc.property(fc.constantFrom(...places), fc.oneof(anything, fc.nat(5)), (place, put) => {
        const given = withValueAt(input, place, put) as RunPipelineInput;
        if (findRunFault(given) !== null || newerEngineOf(given) !== null) return;
        driveRun(given.plan, given.snapshot?.machine);
        expect(given.plan.steps.length).toBe(4);
      }),
      { numRuns: 2_000 },
    );
  });

  it('names the first fault, its place and what is allowed', () => {
    const plan = aPlan(['a', 'b a']);
    expect(findRunFault(null)).toBe('input is null, not an object');
    expect(findRunFault({ x: 1 })).toBe('input.engine_version is absent, not a whole number from 0');
    expect(findRunFault({ ...input, plan: { ...plan, steps: [...plan.steps, 'c'] } })).toBe(
      'input.plan.steps[2] is "c", not an object',
    );
    expect(findScheduledFault({ project_id: 'prj_1', schedule_id: ['x'] })).toBe(
      'input.schedule_id is a list, not a text',
    );
  });

  it('of a later engine waits for a worker that knows it, and of none does not', () => {
    const later = engineVersion + 1;
    expect(newerEngineOf({ engine_version: later, run_id: 'run_1' })).toBe(later);
    expect(newerEngineOf({ engine_version: later, escalation_id: 'esc_1' })).toBe(later);
    for (const version of [engineVersion, 1e308, 1e6, 2.5, `${later}`, null, [later]]) {
      expect(newerEngineOf({ engine_version: version, run_id: 'run_1' })).toBeNull();
    }
    for (const value of [...nonsense, { engine_version: later }, { engine_version: later, run_id: 1 }]) {
      expect(newerEngineOf(value)).toBeNull();
    }
  });
});

describe('a result of an activity', () => {
  it('that is nonsense is none of ours', () => {
    for (const value of nonsense) {
      expect([value, isStepResult(value), isLadderPosition(value), isSubmission(value)]).toEqual([
        value,
        false,
        false,
        false,
      ]);
    }
    fc.assert(
      fc.property(anything, (value) => {
        expect([isStepResult(value), isLadderPosition(value), isSubmission(value)]).toEqual([
          false,
          false,
          false,
        ]);
      }),
    );
  });

  it.each([
    { endpoint: 'http://one', cost_usd: 0.1, duration_ms: 5, output: null },
    { endpoint: null, cost_usd: 0, duration_ms: 0 },
    { skipped: true },
    { waiting: { awaiting: 'budget', until: null } },
    { waiting: { awaiting: 'review', until: '2026-11-28T05:00:00.000Z', ref: { review_id: 'rev_1' } } },
  ])('of a step is %j', (result) => {
    expect(isStepResult(result)).toBe(true);
  });

  it.each([
    { waiting: { awaiting: 'time', until: 'soon' } },
    { waiting: null },
    { endpoint: null, cost_usd: '0', duration_ms: 0 },
  ])('of a step is not %j', (result) => {
    expect(isStepResult(result)).toBe(false);
  });

  it('of every recorded ladder and step is read', () => {
    const activities = recordedResults();
    expect(activities.length).toBeGreaterThan(50);
    for (const { type, result } of activities) {
      if (type === 'executeStep') expect(isStepResult(result)).toBe(true);
      else expect([type, isLadderPosition(result)]).toEqual([type, true]);
    }
  });
});

interface RecordedEvent {
  readonly eventId: string;
  readonly activityTaskScheduledEventAttributes?: { readonly activityType: { readonly name: string } };
  readonly activityTaskCompletedEventAttributes?: {
    readonly scheduledEventId: string;
    readonly result: { readonly payloads: readonly [{ readonly data: string }] };
  };
}

/** The results of the queued activities of committed histories. */
function recordedResults(): { readonly type: string; readonly result: unknown }[] {
  const folder = new URL('../../../../test/histories/', import.meta.url);
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return files.flatMap((name) => {
    const { events } = JSON.parse(readFileSync(new URL(name, folder), 'utf8'));
    const typeOf = new Map<string, string>();
    return (events as RecordedEvent[]).flatMap((event) => {
      const scheduled = event.activityTaskScheduledEventAttributes;
      if (scheduled !== undefined) typeOf.set(event.eventId, scheduled.activityType.name);
      const done = event.activityTaskCompletedEventAttributes;
      if (done === undefined) return [];
      const data = done.result.payloads[0].data;
      return [
        {
          type: typeOf.get(done.scheduledEventId) ?? '',
          result: JSON.parse(Buffer.from(data, 'base64').toString()),
        },
      ];
    });
  });
}
