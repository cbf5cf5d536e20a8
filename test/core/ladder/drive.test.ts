import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../../src/contracts/primitives.ts';
import {
  interruptLadder,
  type LadderTransition,
  makeTransition,
  transientDelayMs,
} from '../../../src/core/ladder/drive.ts';
import type { CorrectionAnswer } from '../../../src/core/ladder/execute-correction.ts';
import type { ExecutionEnd } from '../../../src/core/ladder/execution.ts';
import { type Ladder, restartLadder } from '../../../src/core/ladder/ladder.ts';
import { applyLadder } from '../../../src/core/ladder/machine.ts';
import { aSkill } from '../skills/a-skill.ts';
import { aFailedStep, createFakePorts, type FakePorts, refusal, type Script } from './fake-ports.ts';

const solved: ExecutionEnd = { kind: 'succeeded' };

/** Makes transitions until the ladder ends or asks; at most so many as L1 allows with retries. */
async function drive(ports: FakePorts, from: Ladder): Promise<LadderTransition> {
  let ladder = from;
  for (let count = 0; count < 200; count++) {
    const made = await makeTransition(ports, ladder);
    if ('delay_ms' in made) continue;
    ports.failed.push(...ports.stored.map(({ input }) => input));
    ports.stored = [];
    if (made.outcome.kind !== 'goes_on') return made;
    ladder = made.next;
  }
  throw new Error('the ladder does not end');
}

function decide(ladder: Ladder, input: Json): Ladder {
  return { ...ladder, decided: { review_id: 'rev_1', round: 1, input, remember: true } };
}

function answered(input: Json): CorrectionAnswer {
  return { kind: 'input', input, used: [] };
}

describe('level 0', () => {
  it('runs the one repair that the schema allows, and no model is asked', async () => {
    const ports = createFakePorts({ task: { original: { rate: '44100' } }, run: () => solved });
    const { outcome, execution } = await drive(ports, aFailedStep());
    expect(ports.told).toEqual(['run {"rate":44100} by repair']);
    expect(outcome).toEqual({ kind: 'succeeded', lesson: null, teaches: false });
    expect(execution).toMatchObject({ level: 0, solved_by: null, used: [], input: { rate: 44_100 } });
  });

  it('tries templates after the repair, and says whose it was', async () => {
    const template = JSON.stringify([
      { op: 'test', path: '/rate', value: 44_101 },
      { op: 'replace', path: '/rate', value: 44_100 },
    ]);
    const skill = aSkill({ id: 'skl_1', template });
    const ports = createFakePorts({ templates: [{ skill, groups: {} }], run: () => solved });
    const { execution, next } = await drive(ports, aFailedStep());
    expect(ports.told).toEqual(['run {"rate":44100} by skl_1']);
    expect(execution).toMatchObject({ solved_by: 'skl_1', used: ['skl_1'] });
    expect(next.seen_skills).toEqual(['skl_1']);
  });

  it('without anything to apply is no attempt, and with nobody to ask a person is next', async () => {
    const ports = createFakePorts();
    const { next, outcome } = await drive(ports, aFailedStep());
    expect(next.history).toHaveLength(1);
    expect(outcome).toEqual({ kind: 'stopped', reason: 'no_advisor', error: 'rate is odd' });
    expect(ports.told).toEqual(['advise 1', 'advise 2', 'advise 3', 'advise 4', 'ask 4']);
  });
});

describe('a transition that is made again', () => {
  it('runs what it had corrected before under the same choice, whenever its worker died (L10)', async () => {
    const inputs = fc.uniqueArray(fc.integer({ min: 8_000, max: 90_000 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(inputs, fc.nat(3), async (rates, diesAt) => {
        const stored = rates.slice(0, diesAt).map((rate) => ({ input: { rate }, source: `skl_${rate}` }));
        const ports = createFakePorts();
        ports.stored = [...stored];
        await makeTransition(ports, aFailedStep());
        expect(ports.told).toEqual(
          stored.map(({ input, source }) => `run ${JSON.stringify(input)} by ${source}`),
        );
        expect(ports.stored).toEqual(stored);
      }),
    );
  });

  it('does not ask a model again for what is stored', async () => {
    const ports = createFakePorts({ run: () => solved });
    ports.stored = [{ input: { rate: 48_000 }, source: 'fast model' }];
    const ladder = applyLadder(aFailedStep(), { type: 'unavailable' });
    await makeTransition(ports, { ...aFailedStep(), ...ladder });
    expect(ports.told).toEqual(['run {"rate":48000} by fast model']);
  });
});

const anyAnswer: fc.Arbitrary<CorrectionAnswer> = fc.oneof(
  fc.integer({ min: 7_990, max: 8_010 }).map((rate) => answered({ rate })),
  fc.constantFrom<CorrectionAnswer[]>(
    { kind: 'gave_up', reason: 'too hard' },
    { kind: 'malformed', message: '/rate is missing' },
    { kind: 'unavailable' },
    { kind: 'failed', class: 'transient', error: { code: 'overloaded', message: 'later' } },
    { kind: 'failed', class: 'real', error: refusal },
  ),
);

const anyScript: fc.Arbitrary<Script> = fc
  .record({
    answers: fc.infiniteStream(anyAnswer),
    advices: fc.infiniteStream(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 1, max: 4 }))),
    ways: fc.infiniteStream(fc.constantFrom(null, null, { delay_ms: 5 }, { level: 0 })),
  })
  .map(({ answers, advices, ways }) => {
    let hasGoneBack = false;
    return {
      ask: () => answers.next().value,
      advise: () => {
        const [instructions, suggested_executor_level] = advices.next().value;
        return { kind: 'advised', instructions, reasoning: '', suggested_executor_level };
      },
      others: async () => {
        const way = ways.next().value;
        if (way === null || 'delay_ms' in way || hasGoneBack)
          return way !== null && 'delay_ms' in way ? way : null;
        hasGoneBack = true;
        return way;
      },
    };
  });

describe('whoever answers what', () => {
  it('a ladder ends, and asks a person when nothing helped (L1)', async () => {
    await fc.assert(
      fc.asyncProperty(anyScript, async (script) => {
        const ports = createFakePorts(script);
        const { next, outcome } = await drive(ports, aFailedStep());
        expect(outcome.kind).toBe('stopped');
        expect(next.advice.length).toBeLessThanOrEqual(12);
        expect(next.history.length).toBeLessThanOrEqual(1 + 14 + 1);
      }),
    );
  });

  it('no input is executed twice (L11), and none that the schema refuses', async () => {
    await fc.assert(
      fc.asyncProperty(anyScript, async (script) => {
        const ports = createFakePorts(script);
        await drive(ports, aFailedStep());
        const ran = ports.told.filter((line) => line.startsWith('run ')).map((line) => line.split(' by ')[0]);
        expect(new Set(ran).size).toBe(ran.length);
        expect(ran.filter((line) => /79\d\d/.test(line ?? ''))).toEqual([]);
      }),
    );
  });

  it('the history keeps every entry that it had (L3)', async () => {
    await fc.assert(
      fc.asyncProperty(anyScript, async (script) => {
        const first = aFailedStep();
        const { next } = await drive(createFakePorts(script), first);
        expect(next.history.slice(0, first.history.length)).toEqual(first.history);
      }),
    );
  });
});

describe('other ladders with the same failure', () => {
  it('are waited for, without a transition', async () => {
    const ports = createFakePorts({ others: async () => ({ delay_ms: 700 }) });
    const asking = await makeTransition(ports, aFailedStep());
    const { next } = asking as LadderTransition;
    expect(next.command).toMatchObject({ type: 'advise', from_level: 1 });
    expect(await makeTransition(ports, next)).toEqual({ delay_ms: 700 });
    expect(ports.told).toEqual([]);
  });

  it('are learnt from by going back to a level, with all that was tried (L9)', async () => {
    const ports = createFakePorts({ others: async () => ({ level: 0 }) });
    const { next } = (await makeTransition(ports, aFailedStep())) as LadderTransition;
    const back = (await makeTransition(ports, next)) as LadderTransition;
    expect(back).toMatchObject({ outcome: { kind: 'goes_on' }, event: { kind: 'followed', level: 0 } });
    expect(back.next).toMatchObject({
      has_followed: true,
      history: next.history,
      command: { type: 'execute' },
    });
  });
});

describe('what had no money', () => {
  const details = {
    scope: 'run',
    run_id: 'run_1',
    limit_usd: 1,
    spent_usd: 0.9,
    reserved_usd: 0,
    resets_at: null,
    minimum_usd: 0.5,
  } as const;
  const error = { code: 'budget_exhausted', message: 'the run has no room', details };
  const short: ExecutionEnd = { kind: 'failed', class: 'budget', error };

  it('stops the ladder with the budget that had none', async () => {
    const ports = createFakePorts({ task: { original: { rate: '44100' } }, run: () => short });
    const { next, outcome } = await drive(ports, aFailedStep());
    expect(outcome).toMatchObject({ kind: 'stopped', reason: 'budget' });
    expect(next.command).toMatchObject({ type: 'stop', refusal: details });
    expect(next.history).toHaveLength(1);
  });

  it('names no budget where it was the limit of the call itself', async () => {
    const own = {
      ...short,
      error: { code: 'ceiling_too_low', message: 'costs more', details: { minimum_usd: 1 } },
    };
    const ports = createFakePorts({ task: { original: { rate: '44100' } }, run: () => own });
    expect((await drive(ports, aFailedStep())).next.command).not.toHaveProperty('refusal');
  });

  it('keeps what a person decided until there is some', async () => {
    const ends = [short, solved];
    const ports = createFakePorts({ run: () => ends.shift() ?? short });
    const decided = decide(aFailedStep(), { rate: 9_000 });
    const { next, outcome } = await drive(ports, decided);
    expect(outcome).toMatchObject({ kind: 'stopped', reason: 'budget' });
    expect(next).toMatchObject({ decided: decided.decided, history: decided.history });
    expect((await drive(ports, restartLadder(next, 4))).outcome).toMatchObject({
      kind: 'succeeded',
      teaches: true,
    });
    expect(ports.told).toEqual(['run {"rate":9000} by review:rev_1', 'run {"rate":9000} by review:rev_1']);
  });
});

describe('what a person decided', () => {
  it('is executed before anything else, also if it has failed before (L12)', async () => {
    const ports = createFakePorts({ run: () => solved });
    const { outcome, next, execution } = await drive(ports, decide(aFailedStep(), { rate: 44_101 }));
    expect(ports.told).toEqual(['run {"rate":44101} by review:rev_1']);
    expect(outcome).toEqual({ kind: 'succeeded', lesson: null, teaches: true });
    expect([next.decided, execution?.level]).toEqual([null, 5]);
  });

  it.each<[string, Json, ExecutionEnd, string[]]>([
    [
      'is refused',
      { rate: 9_000 },
      { kind: 'failed', class: 'real', error: refusal },
      ['run {"rate":9000} by review:rev_1'],
    ],
    ['does not match the schema', { rate: 1 }, solved, []],
  ])('is asked about again when it %s', async (_, input, end, told) => {
    const ports = createFakePorts({ run: () => end });
    const { next, outcome } = await drive(ports, decide(aFailedStep(), input));
    expect(ports.told).toEqual(told);
    expect(outcome).toMatchObject({ kind: 'stopped', reason: 'exhausted' });
    expect(next.history.map(({ level }) => level)).toEqual([0, 5]);
  });

  it('is begun again after an interruption', async () => {
    const ports = createFakePorts({ run: () => ({ kind: 'interrupted', delayMs: 300 }) });
    expect(await makeTransition(ports, decide(aFailedStep(), { rate: 9_000 }))).toEqual({ delay_ms: 300 });
  });
});

it('a ladder that needs a person asks at once, and executes nothing (L8)', async () => {
  const ports = createFakePorts();
  const made = await makeTransition(ports, aFailedStep({ needs_person: true as never }));
  expect(made).toMatchObject({ outcome: { kind: 'stopped', reason: 'exhausted', error: 'rate is odd' } });
  expect(ports.told).toEqual([]);
});

it.each([
  ['timed_out', 'time'],
  ['cancel_requested', 'cancelled'],
] as const)('a ladder that is %s stops for %s, whether or not a person has decided', (type, reason) => {
  const ladder = aFailedStep();
  const outcome = { kind: 'stopped', reason, error: 'rate is odd' };
  expect(interruptLadder(ladder, type)).toMatchObject({ outcome });
  const decided = interruptLadder(decide(ladder, { rate: 9_000 }), type);
  expect([decided.outcome, decided.next.decided]).toEqual([outcome, null]);
});

it('only a command that failed for a reason of time is waited with', () => {
  const ladder = aFailedStep();
  const again = applyLadder(ladder, {
    type: 'failed',
    class: 'transient',
    attempted_at: 1,
    error: 'later',
    fingerprint: 'f',
  });
  expect([transientDelayMs(ladder, 0.5), transientDelayMs(again, 0.5)]).toEqual([0, 1_000]);
});
