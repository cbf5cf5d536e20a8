import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import { type DrivenRun, driveRun, type RunPorts, type UnitEnd } from '../../src/run/drive.ts';
import { applyEvent, type RunCommand, startRun } from '../../src/run/machine.ts';
import type { RunPlan } from '../../src/run/plan.ts';
import {
  anyPlan,
  anyTrouble,
  anyTurns,
  aPlan,
  endOf,
  nextTurn,
  planOf,
  type Trouble,
  type Turn,
} from './a-plan.ts';

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
const done: UnitEnd = { state: 'succeeded' };

/** Of a run in which nothing escalates. */
const without: Omit<RunPorts, 'executeStep' | 'cancelRunning'> = {
  decide: () => expect.unreachable(),
  judgeRound: () => expect.unreachable(),
  escalateStep: () => expect.unreachable(),
  resumeStep: () => expect.unreachable(),
  listen: () => expect.unreachable(),
  record: () => expect.unreachable(),
  historyPressure: () => 'none',
  restChanged: () => expect.unreachable(),
  continueAsNew: () => expect.unreachable(),
  giveUpStep: () => expect.unreachable(),
  cancelEscalations: () => expect.unreachable(),
  callOff: () => expect.unreachable(),
  judgeAnswer: () => expect.unreachable(),
};

function begun(plan: RunPlan, ports: RunPorts): DrivenRun {
  const { run, begin } = driveRun(plan);
  begin(ports);
  return run;
}

/** The machine alone, with the same turns. */
function playMachine(plan: RunPlan, trouble: Trouble, turns: Iterator<Turn>) {
  const { state, commands } = startRun(plan);
  const running: number[] = [];
  let finish: RunCommand | undefined;
  const obey = (todo: readonly RunCommand[]): void => {
    for (const command of todo) {
      if (command.type === 'execute') running.push(command.step);
      if (command.type === 'finish') finish = command;
    }
  };
  obey(commands);
  for (let ends = 0; finish === undefined; ends++) {
    if (ends === trouble.cancelAfter) obey(applyEvent(state, { type: 'cancel_requested' }));
    const turn = nextTurn(turns);
    const [step] = running.splice(turn.pick % running.length, 1);
    obey(applyEvent(state, { type: 'step_ended', step: step as number, item: 0, ...endOf(turn, trouble) }));
  }
  return { steps: state.steps, finish };
}

/** The driver with ports whose steps end at the command of the turns. */
async function playDriver(plan: RunPlan, trouble: Trouble, turns: Iterator<Turn>) {
  const running: ((end: UnitEnd) => void)[] = [];
  let stops = 0;
  const run = begun(plan, {
    ...without,
    executeStep: () => new Promise((resolve) => running.push(resolve)),
    cancelRunning: () => {
      stops += 1;
    },
  });
  for (let ends = 0; running.length > 0; ends++) {
    if (ends === trouble.cancelAfter) run.send({ type: 'cancel_requested' });
    const turn = nextTurn(turns);
    running.splice(turn.pick % running.length, 1)[0]?.(endOf(turn, trouble) as UnitEnd);
    await settled();
  }
  return { steps: run.state.steps, finish: { type: 'finish', ...(await run.ended) }, stops };
}

describe('driveRun', () => {
  it('ends as the machine does', async () => {
    await fc.assert(
      fc.asyncProperty(anyPlan(40), anyTrouble, anyTurns, async (plan, trouble, turns) => {
        const recorded = Array.from({ length: plan.steps.length }, () => nextTurn(turns));
        const alone = playMachine(plan, trouble, recorded.values());
        const { stops, ...driven } = await playDriver(plan, trouble, recorded.values());
        expect(driven).toEqual(alone);
        expect(stops).toBeLessThanOrEqual(1);
      }),
    );
  });
});

describe('the ports of a driven run', () => {
  it('judge the answer of each item that succeeded, and no other unit', async () => {
    const judged: number[] = [];
    const changes: unknown[] = [];
    const plan = aPlan(['a']);
    const each = { enough: 2, judges: true } as const;
    const run = begun({ ...plan, steps: plan.steps.map((step) => ({ ...step, decides: true, each })) }, {
      ...without,
      decide: async () => [{ type: 'go', items: 3 }],
      executeStep: async ({ item }) =>
        item === 1 ? { state: 'failed', error: { code: 'broken', message: 'it broke' } } : done,
      judgeAnswer: async ({ item }) => {
        judged.push(item);
        return item === 2
          ? { counts: false, error: { code: 'no', message: 'it has no value' } }
          : { counts: true };
      },
      record: (list) => changes.push(...list),
      callOff: () => undefined,
      cancelRunning: () => undefined,
    } as RunPorts);
    expect(await run.ended).toMatchObject({
      outcome: 'failed',
      error: { message: expect.stringContaining('at most 1 can count; first item 1: it broke') },
    });
    expect(judged).toEqual([2, 3]);
    expect(run.state.fans.get(0)).toMatchObject({ good: 1, missed: 2 });
  });

  it('pass on why an answer does not count', async () => {
    const plan = aPlan(['a']);
    const each = { enough: 1, judges: true } as const;
    const run = begun({ ...plan, steps: plan.steps.map((step) => ({ ...step, decides: true, each })) }, {
      ...without,
      decide: async () => [{ type: 'go', items: 1 }],
      executeStep: async () => done,
      judgeAnswer: async () => ({ counts: false, error: { code: 'no', message: 'it has no value' } }),
      record: () => undefined,
      cancelRunning: () => undefined,
    } as RunPorts);
    expect((await run.ended).error?.message).toMatch(/first item 1: it has no value$/);
  });

  it('get each step once, after its dependencies', async () => {
    const seen: string[] = [];
    const run = begun(aPlan(['d b c', 'b a', 'a', 'c a']), {
      ...without,
      executeStep: async ({ step: { id } }) => {
        seen.push(id);
        return done;
      },
      cancelRunning: () => expect.unreachable(),
    });
    expect(await run.ended).toEqual({ outcome: 'succeeded', error: null });
    expect(seen).toEqual(['a', 'b', 'c', 'd']);
  });

  it('receive a stop on a cancel, and the run ends when they have stopped', async () => {
    const stop = new AbortController();
    const run = begun(aPlan(['a', 'b', 'c a b']), {
      ...without,
      executeStep: ({ step: { id } }) =>
        new Promise((resolve) => {
          const error = { code: 'run_cancelled', message: 'the step was cancelled' };
          stop.signal.addEventListener('abort', () => resolve({ state: 'cancelled', error }));
          if (id === 'c') expect.unreachable();
        }),
      cancelRunning: () => stop.abort(),
    });
    run.send({ type: 'cancel_requested' });
    expect(await run.ended).toEqual({ outcome: 'cancelled', error: null });
    expect(run.state.steps).toEqual(['cancelled', 'cancelled', 'cancelled']);
  });

  it('stop the ladders when a step fails', async () => {
    let stopLadder: (end: UnitEnd) => void = () => undefined;
    const error = { code: 'contact_lost', message: 'gone' };
    const run = begun(aPlan(['a', 'b']), {
      ...without,
      executeStep: async ({ step: { id } }) =>
        id === 'a' ? { state: 'escalated' } : { state: 'failed', error },
      escalateStep: () =>
        new Promise((resolve) => {
          stopLadder = resolve;
        }),
      cancelEscalations: () => stopLadder({ state: 'cancelled', error }),
      cancelRunning: () => expect.unreachable(),
    });
    expect(await run.ended).toMatchObject({ outcome: 'failed', error: { message: 'step b: gone' } });
    expect(run.state.steps).toEqual(['cancelled', 'failed']);
  });

  it('receive one call, when nothing is running, to continue a long run in a new history', async () => {
    let pressure: 'none' | 'hard' = 'none';
    const moved = new Promise<void>((resolve) => {
      const { run, begin } = driveRun(aPlan(['a', 'b a']));
      begin({
        ...without,
        executeStep: async ({ step: { id } }) => {
          if (id === 'b') expect.unreachable();
          pressure = 'hard';
          return done;
        },
        historyPressure: () => pressure,
        continueAsNew: () => {
          expect(run.state.steps).toEqual(['succeeded', 'pending']);
          resolve();
        },
        cancelRunning: () => expect.unreachable(),
      });
    });
    await moved;
  });

  it('begin nothing in a run that begins paused', async () => {
    const { run, begin } = driveRun(aPlan(['a']), { isPaused: true });
    const ran: string[] = [];
    begin({
      ...without,
      executeStep: async ({ step: { id } }) => {
        ran.push(id);
        return done;
      },
      cancelRunning: () => expect.unreachable(),
    });
    expect(ran).toEqual([]);
    run.send({ type: 'resumed' });
    expect(await run.ended).toMatchObject({ outcome: 'succeeded' });
    expect(ran).toEqual(['a']);
  });

  it('must be there before anything is sent', () => {
    const { run } = driveRun(aPlan(['a']));
    expect(() => run.send({ type: 'paused' })).toThrow('paused was sent to a run that has not begun');
  });

  it('may end a run that is over at once', async () => {
    const run = begun(aPlan([]), {
      ...without,
      executeStep: async () => done,
      cancelRunning: () => undefined,
    });
    expect(await run.ended).toEqual({ outcome: 'succeeded', error: null });
  });
});

describe('a step that escalates', () => {
  it('climbs, waits for its review and climbs again; others continue meanwhile', async () => {
    const told: string[] = [];
    let decide: () => void = () => undefined;
    const run = begun(aPlan(['a', 'b a', 'c', 'd c'], 1), {
      ...without,
      executeStep: async ({ step: { id } }) => {
        told.push(`execute ${id}`);
        if (id === 'd') decide();
        return id === 'a' ? { state: 'escalated' } : done;
      },
      escalateStep: async ({ step: { id } }) => {
        told.push(`escalate ${id}`);
        const wait = { awaiting: 'review', until: null, ladder: true, ref: `review of ${id}` } as const;
        return { state: 'waiting', wait };
      },
      listen: ({ step: { id }, index: step, item }) => {
        told.push(`listen ${id}`);
        decide = () => run.send({ type: 'step_woken', step, item });
      },
      resumeStep: async ({ step: { id } }, { ref }) => {
        told.push(`resume ${id} after ${ref}`);
        return done;
      },
      cancelRunning: () => expect.unreachable(),
    });
    expect(await run.ended).toEqual({ outcome: 'succeeded', error: null });
    expect(told).toEqual([
      ...['execute a', 'escalate a', 'listen a', 'execute c', 'execute d'],
      ...['resume a after review of a', 'execute b'],
    ]);
  });
});

async function timeOf(plan: RunPlan): Promise<number> {
  const spentMs = countProcessorMs();
  const run = begun(plan, {
    ...without,
    executeStep: async () => done,
    cancelRunning: () => undefined,
  });
  await run.ended;
  return spentMs();
}

/** Of five rounds; no further ones after one that took less than enough. */
async function fastest(plan: RunPlan, enoughMs = 0): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5 && best >= enoughMs; round++) best = Math.min(best, await timeOf(plan));
  return best;
}

describe('the cost of a driven run', () => {
  const chain = (n: number): RunPlan =>
    planOf(Array.from({ length: n }, (_, at) => (at === 0 ? [] : [at - 1])));
  const wide = (n: number): RunPlan =>
    planOf(
      Array.from({ length: n }, () => []),
      10_000,
    );

  it.each([
    ['a chain', chain],
    ['all at once', wide],
  ])('grows with its steps: %s of 20,000 takes about ten times one of 2,000', async (_, shape) => {
    const enoughMs = 20 * (await fastest(shape(2_000))) + 150;
    expect(await fastest(shape(20_000), enoughMs)).toBeLessThan(enoughMs);
  });
});
