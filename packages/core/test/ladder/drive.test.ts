import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/contracts/primitives.ts';
import {
  interruptLadder,
  type LadderPorts,
  type LadderTransition,
  makeTransition,
  transientDelayMs,
} from '../../src/ladder/drive.ts';
import type { CorrectionAnswer } from '../../src/ladder/execute-correction.ts';
import { type ExecutionEnd, endExecution, failedCorrection } from '../../src/ladder/execute-correction.ts';
import { applyEvent, type Ladder, newLadder, restartLadder } from '../../src/ladder/ladder.ts';
import { applyLadder } from '../../src/ladder/machine.ts';
import type { RankedSkill } from '../../src/skills/match.ts';
import { aSkill } from '../skills/a-skill.ts';
import { aLadder } from './a-ladder.ts';
import { aFailedStep, createFakePorts, type FakePorts, refusal, type Script } from './fake-ports.ts';

const solved: ExecutionEnd = { kind: 'succeeded' };
const refusedAt = {
  type: 'failed',
  class: 'real',
  attempted_at: 1,
  error: 'rate is odd',
  fingerprint: 'odd',
} as const;

function aTemplate(rate: number): RankedSkill {
  const template = JSON.stringify([{ op: 'replace', path: '/rate', value: rate }]);
  return { skill: aSkill({ id: `skl_${rate}`, template }), groups: {} };
}

/** Makes transitions until the ladder ends or asks; at most so many as L1 allows with retries. */
async function drive(ports: FakePorts, from: Ladder): Promise<LadderTransition> {
  let ladder = from;
  for (let count = 0; count < 200; count++) {
    const made = await makeTransition(ports, ladder);
    if (!('next' in made)) continue;
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

  it('tries templates after the repair, and reports the skill of the one that worked', async () => {
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

  it('names the decisions of people that the solving skill follows', async () => {
    const as_decided = { by: ['anna'], times: 3 };
    const follow = (rate: number, decided: typeof as_decided): RankedSkill => {
      const { skill, groups } = aTemplate(rate);
      return { skill: { ...skill, as_decided: decided }, groups };
    };
    const templates = [follow(9_000, { by: ['ben'], times: 4 }), follow(44_100, as_decided)];
    const run = (input: Json): ExecutionEnd =>
      (input as { rate: number }).rate === 44_100
        ? solved
        : { kind: 'failed', class: 'real', error: refusal };
    const { event } = await drive(createFakePorts({ templates, run }), aFailedStep());
    expect(event).toMatchObject({ outcome: 'succeeded', as_decided });
    const plain = createFakePorts({ templates: [aTemplate(9_000)], run: () => solved });
    expect((await drive(plain, aFailedStep())).event).not.toHaveProperty('as_decided');
  });

  it('with nothing to apply makes no attempt, and without advisors opens a review', async () => {
    const ports = createFakePorts();
    const { next, outcome } = await drive(ports, aFailedStep());
    expect([next.history.length, next.advice]).toEqual([1, []]);
    expect(outcome).toEqual({ kind: 'stopped', reason: 'no_advisor', error: 'rate is odd' });
    expect(ports.told).toEqual(['advise 1', 'advise 2', 'advise 3', 'advise 4', 'ask 4']);
  });
});

/** Level 0 has nothing to apply, and the first model advises; what follows is at the level that it names. */
function advised(level?: number): Ladder {
  const suggested = level === undefined ? {} : { suggested_executor_level: level };
  const said = { attempted_at: 1, error: 'none', fingerprint: 'none' };
  const asking = applyEvent(aFailedStep(), { type: 'no_template', ...said });
  return applyEvent(asking, { type: 'advised', instructions: 'round it', ...suggested });
}

describe('a transition', () => {
  it('keeps what a model advises, and why', async () => {
    const given = { instructions: 'round it', reasoning: 'it is odd', suggested_executor_level: 2 };
    const ports = createFakePorts({ advise: () => ({ kind: 'advised', ...given }) });
    const asking = applyLadder(aFailedStep(), { type: 'unavailable' });
    const made = await makeTransition(ports, { ...aFailedStep(), ...applyLadder(asking, refusedAt) });
    expect(made).toMatchObject({
      outcome: { kind: 'goes_on' },
      event: { kind: 'advised', level: 2, outcome: 'advised' },
      next: {
        advice: [{ ...given, from_level: 2, label: 'capable model', fingerprint: 'odd' }],
        command: { type: 'execute', level: 2 },
      },
    });
  });

  it('is made again after a second when the caller of the advice has gone', async () => {
    const ports = createFakePorts({ advise: () => ({ kind: 'interrupted' }) });
    const asking = { ...aFailedStep(), ...applyLadder(advised(), refusedAt) };
    expect(await makeTransition(ports, asking)).toEqual({ delay_ms: 1_000 });
  });

  it.each([
    ['teaches', [], true, null],
    ['teaches nothing where a template of a skill has made it', [45_000], false, 'skl_45000'],
  ] as const)('that ends after an advice %s', async (_, rates, teaches, solved_by) => {
    const templates = rates.map((rate) => aTemplate(rate));
    const ports = createFakePorts({ templates, ask: () => answered({ rate: 9_000 }), run: () => solved });
    const { outcome, execution } = await drive(ports, advised(templates.length === 0 ? 1 : undefined));
    const lesson = { advice: { instructions: 'round it' }, attempt: { error: 'rate is odd' } };
    expect(outcome).toMatchObject({ kind: 'succeeded', lesson, teaches });
    expect(execution?.solved_by).toBe(solved_by);
  });

  it('adds each input that failed to the history, at its level', async () => {
    const ports = createFakePorts({ templates: [aTemplate(45_000), aTemplate(46_000)] });
    const made = (await makeTransition(ports, aFailedStep())) as LadderTransition;
    expect(made.event).toEqual({ kind: 'executed', level: 0, outcome: 'failed' });
    const failed = { level: 0, label: 'static template', attempted_at: 2_000, error: 'rate is odd' };
    expect(made.next.history.slice(1)).toMatchObject([failed, failed]);
  });

  it('of a ladder that has ended changes nothing', async () => {
    const ended = applyEvent(aFailedStep(), { type: 'succeeded' });
    const made = await makeTransition(createFakePorts(), ended);
    expect(made).toMatchObject({ next: ended, outcome: { kind: 'succeeded', lesson: null, teaches: false } });
  });
});

describe('a job by itself', () => {
  function portsOf(end: ExecutionEnd, skills: readonly RankedSkill[] = []): LadderPorts {
    const execute = async (level: number) => endExecution(level, end, { skills });
    return { ...createFakePorts(), work: { kind: 'job', execute } };
  }
  const job = newLadder(aLadder({ start_level: 1 }));

  it('is executed as a whole', async () => {
    const made = await makeTransition(portsOf({ kind: 'succeeded', result: 7 }, [aTemplate(1)]), job);
    expect(made).toMatchObject({
      outcome: { kind: 'succeeded', lesson: null, teaches: false },
      event: { kind: 'executed', level: 1, outcome: 'succeeded' },
      execution: { level: 1, end: { result: 7 } },
      next: { seen_skills: [] },
    });
  });

  it('is begun again after an interruption', async () => {
    const made = await makeTransition(portsOf({ kind: 'interrupted', delayMs: 70 }), job);
    expect(made).toEqual({ delay_ms: 70 });
  });

  it('asks for advice when its level gave up', async () => {
    const error = { code: 'gave_up', message: 'too hard' };
    const made = await makeTransition(portsOf({ kind: 'gave_up', error }), job);
    expect(made).toMatchObject({
      next: { history: [{ level: 1, error: 'too hard' }], command: { type: 'advise', from_level: 2 } },
    });
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

describe('with any answers of the ports', () => {
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

  it('are learnt from by going back to a level, with everything that was tried (L9)', async () => {
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

describe('a transition without money', () => {
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
    expect(next).toMatchObject({
      decided: decided.decided,
      history: decided.history,
      command: { type: 'stop', reason: 'budget', error: 'the run has no room', refusal: details },
    });
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
    const made = await drive(ports, decide(aFailedStep(), { rate: 44_101 }));
    const { outcome, next, execution, event } = made;
    expect(ports.told).toEqual(['run {"rate":44101} by review:rev_1']);
    expect(outcome).toEqual({ kind: 'succeeded', lesson: null, teaches: true });
    expect([next.decided, execution?.level, execution?.input]).toEqual([null, 5, { rate: 44_101 }]);
    expect(event).toEqual({ kind: 'executed', level: 5, outcome: 'succeeded', review_id: 'rev_1' });
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

const late = { code: 'queue_timeout', message: 'waited 1 h' };

describe.each([
  ['of a repair', () => aFailedStep()],
  ['of a person', () => decide(aFailedStep(), { rate: 9_000 })],
])('a call %s without a free slot (L13)', (_, from) => {
  const task = { original: { rate: '44100' } };

  it.each([null, 1_700_000_000_000])(
    'waits in line until %s, and the ladder stays where it is',
    async (until) => {
      const ports = createFakePorts({ task, run: () => ({ kind: 'in_line', until }) });
      expect(await makeTransition(ports, from())).toEqual({ in_line: { until } });
    },
  );

  it('ends its step after queue_timeout: no model and no person is asked, and nothing is learnt', async () => {
    const ports = createFakePorts({ task, run: () => failedCorrection(late) });
    const { next, outcome, execution, event } = await drive(ports, from());
    expect(outcome).toEqual({ kind: 'ended', state: 'failed', error: late });
    expect(event).toEqual({ kind: 'executed', level: execution?.level, outcome: 'too_late' });
    expect([next.decided, next.history.length, next.advice.length]).toEqual([null, 1, 0]);
    expect(execution?.end.kind).toBe('too_late');
  });
});

it('a ladder that needs a person asks at once, and executes nothing (L8)', async () => {
  const ports = createFakePorts();
  const made = await makeTransition(ports, aFailedStep({ needs_person: true as never }));
  expect(made).toMatchObject({
    outcome: { kind: 'stopped', reason: 'exhausted', error: 'rate is odd' },
    event: { kind: 'asked', level: 5, label: 'human' },
  });
  expect(ports.told).toEqual([]);
});

it.each([
  ['timed_out', 'time'],
  ['cancel_requested', 'cancelled'],
] as const)('a ladder that is %s stops for %s, whether or not a person has decided', (type, reason) => {
  const ladder = aFailedStep();
  const outcome = { kind: 'stopped', reason, error: 'rate is odd' };
  expect(interruptLadder(ladder, type)).toMatchObject({
    outcome,
    next: { command: { type: 'stop', reason } },
  });
  const decided = interruptLadder(decide(ladder, { rate: 9_000 }), type);
  expect([decided.outcome, decided.next.decided]).toEqual([outcome, null]);
  const fresh = interruptLadder({ ...decide(ladder, { rate: 9_000 }), history: [] }, type);
  expect(fresh.outcome).toEqual({ kind: 'stopped', reason, error: null });
});

it('a ladder waits only for a command that failed for a reason of time', () => {
  const ladder = aFailedStep();
  const again = applyLadder(ladder, {
    type: 'failed',
    class: 'transient',
    attempted_at: 1,
    error: 'later',
    fingerprint: 'f',
  });
  const asking = applyLadder(advised(), refusedAt);
  const askingAgain = applyLadder(asking, { ...refusedAt, class: 'transient' });
  const stopped = applyLadder(ladder, { type: 'timed_out' });
  const delays = [ladder, again, asking, askingAgain, stopped].map((one) => transientDelayMs(one, 0.5));
  expect(delays).toEqual([0, 1_000, 0, 1_000, 0]);
});
