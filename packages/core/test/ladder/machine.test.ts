import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyLadder, createAttempt } from '../../src/ladder/machine.ts';
import type { LadderState } from '../../src/ladder/types.ts';
import { aLadder, anyEvents, anyStart, aStepLadder, attempt, commandOf, eventOf, tell } from './a-ladder.ts';

/** What it asks first and after every event. */
function play(start: LadderState, script: readonly string[]): string[] {
  return [commandOf(start), ...script.map((_, at) => commandOf(tell(start, script.slice(0, at + 1))))];
}

const stories: [rule: string, start: LadderState, script: string[], said: string[]][] = [
  ['a success at once teaches nothing', aLadder(), ['succeeded'], ['execute 0', 'succeed 0']],
  ['a job starts at its stored level', aLadder({ start_level: 3 }), [], ['execute 3']],
  ['a job stored at level 5 is for a person', aLadder({ start_level: 5 }), [], ['stop exhausted']],
  [
    'a step tries level 0 for free before it asks, and nothing to apply there asks the first level',
    aStepLadder(),
    ['no_template', 'advised fix 1', 'succeeded'],
    ['execute 0', 'advise 1', 'execute 1', 'succeed 1'],
  ],
  [
    'an advisor that names no level sends the job to level 0',
    aLadder(),
    ['real', 'advised fix'],
    ['execute 0', 'advise 1', 'execute 0'],
  ],
  [
    'a constant error climbs one advisor at a time and ends with one execution at the top',
    aLadder(),
    ['real', 'advised a', 'real', 'advised b', 'real', 'advised c', 'real', 'advised d', 'real', 'real'],
    'execute 0,advise 1,execute 0,advise 2,execute 0,advise 3,execute 0,advise 4,execute 0,execute 4,stop exhausted'.split(
      ',',
    ),
  ],
  [
    'a new error starts again above the level that failed',
    aLadder(),
    ['real f', 'advised a', 'real f', 'advised b', 'real g'],
    ['execute 0', 'advise 1', 'execute 0', 'advise 2', 'execute 0', 'advise 1'],
  ],
  [
    'a level that gave r advices is not asked again',
    aLadder({ max_advices_per_level: 1 }),
    ['real f', 'advised a', 'real g'],
    ['execute 0', 'advise 1', 'execute 0', 'advise 2'],
  ],
  [
    'a failure at the top is for a person',
    aLadder(),
    ['real', 'advised a 4', 'real'],
    ['execute 0', 'advise 1', 'execute 4', 'stop exhausted'],
  ],
  [
    'the same advice for the same error is not executed again',
    aLadder(),
    ['real f', 'advised a 1', 'real f', 'advised a 1', 'advised a 1', 'advised a 1'],
    ['execute 0', 'advise 1', 'execute 1', 'advise 2', 'advise 3', 'advise 4', 'execute 4'],
  ],
  [
    'the same advice for another error, or for another level, is executed',
    aLadder(),
    ['real f', 'advised a 0', 'real g', 'advised a 0', 'real g', 'advised a 1'],
    ['execute 0', 'advise 1', 'execute 0', 'advise 1', 'execute 0', 'advise 2', 'execute 1'],
  ],
  [
    'an advisor may decide that only a person helps',
    aLadder(),
    ['real', 'advised ask-them 5'],
    ['execute 0', 'advise 1', 'stop advisor_says_human'],
  ],
  [
    'a suggested level outside 0 to 4 is brought there, and one that is no integer is none',
    aLadder(),
    ['real', 'advised a -3', 'real', 'advised b 2.5', 'real', 'advised c 9'],
    ['execute 0', 'advise 1', 'execute 0', 'advise 2', 'execute 0', 'advise 3', 'stop advisor_says_human'],
  ],
  [
    'giving up at the top is its own reason, below it a failure',
    aLadder(),
    ['gave_up', 'advised a 4', 'gave_up'],
    ['execute 0', 'advise 1', 'execute 4', 'stop gave_up'],
  ],
  [
    'a transient failure is the same command again, at most as often as allowed',
    aLadder({ max_transients: 2 }),
    ['transient', 'transient', 'transient'],
    ['execute 0', 'execute 0 again', 'execute 0 again', 'stop ops'],
  ],
  [
    'an advisor that stays away is passed over',
    aLadder({ max_transients: 1 }),
    ['real', 'transient', 'transient', 'malformed', 'malformed', 'advised a'],
    ['execute 0', 'advise 1', 'advise 1 again', 'advise 2', 'advise 2 again', 'advise 3', 'execute 0'],
  ],
  [
    'a malformed answer is asked for once more, then it is a failure',
    aLadder({ start_level: 1 }),
    ['malformed', 'malformed'],
    ['execute 1', 'execute 1 again', 'advise 2'],
  ],
  [
    'a level without an instance falls through upward, for advice and for execution',
    aLadder(),
    ['real', 'unavailable', 'advised a 2', 'unavailable', 'real'],
    ['execute 0', 'advise 1', 'advise 2', 'execute 2', 'execute 3', 'advise 4'],
  ],
  [
    'without any model it is for a person',
    aStepLadder(),
    ['no_template', 'unavailable', 'unavailable', 'unavailable', 'unavailable', 'unavailable'],
    ['execute 0', 'advise 1', 'advise 2', 'advise 3', 'advise 4', 'execute 4', 'stop no_advisor'],
  ],
  [
    'when no model is above the one that was asked, no level is left',
    aStepLadder(),
    ['no_template', 'advised a 1', 'real', 'unavailable', 'unavailable', 'unavailable', 'unavailable'],
    [
      ...['execute 0', 'advise 1', 'execute 1', 'advise 2', 'advise 3', 'advise 4', 'execute 4'],
      'stop exhausted',
    ],
  ],
  [
    'one piece of advice proves that a model was available, with any result',
    aStepLadder(),
    ['no_template', 'advised a', 'real f', 'unavailable', 'unavailable', 'unavailable', 'unavailable'],
    [
      ...['execute 0', 'advise 1', 'execute 0', 'advise 2', 'advise 3', 'advise 4', 'execute 4'],
      'stop exhausted',
    ],
  ],
  [
    'so does one execution at level 1 that failed',
    aStepLadder({ start_level: 1 }),
    ['real f', 'unavailable', 'unavailable', 'unavailable', 'unavailable'],
    ['execute 1', 'advise 2', 'advise 3', 'advise 4', 'execute 4', 'stop exhausted'],
  ],
  [
    'after the free try nothing runs or advises below the lowest level',
    aStepLadder({ lowest_level: 2 }),
    ['no_template', 'advised a', 'real f', 'advised b 1', 'real f'],
    ['execute 0', 'advise 2', 'execute 2', 'advise 3', 'execute 2', 'advise 4'],
  ],
  [
    'above the highest allowed level is a person',
    aStepLadder({ max_level: 1 }),
    ['no_template', 'advised a 3', 'real'],
    ['execute 0', 'advise 1', 'execute 1', 'stop exhausted'],
  ],
  [
    'no level but 0 means skills, then a person',
    aStepLadder({ max_level: 0 }),
    ['no_template'],
    ['execute 0', 'stop exhausted'],
  ],
  ['a wrong configuration is for operations', aLadder(), ['config'], ['execute 0', 'stop ops']],
  [
    'no budget is for a person who can raise it',
    aLadder(),
    ['real', 'budget'],
    ['execute 0', 'advise 1', 'stop budget'],
  ],
  ['time runs out', aLadder(), ['real', 'timed_out'], ['execute 0', 'advise 1', 'stop time']],
  [
    'a cancel stops it, and nothing follows',
    aLadder(),
    ['cancel_requested', 'succeeded'],
    ['execute 0', 'stop cancelled', 'stop cancelled'],
  ],
  [
    'what has ended stays as it ended',
    aLadder(),
    ['succeeded', 'cancel_requested', 'timed_out', 'unavailable', 'real'],
    ['execute 0', ...Array<string>(5).fill('succeed 0')],
  ],
  [
    'and what has stopped as it stopped',
    aLadder(),
    ['cancel_requested', 'timed_out', 'unavailable', 'config', 'real'],
    ['execute 0', ...Array<string>(5).fill('stop cancelled')],
  ],
  [
    'an advisor does not give up',
    aLadder(),
    ['real', 'gave_up', 'no_template'],
    ['execute 0', 'advise 1', 'advise 1', 'advise 1'],
  ],
  [
    'an event that answers another command changes nothing',
    aLadder(),
    ['advised a', 'real', 'succeeded'],
    ['execute 0', 'execute 0', 'advise 1', 'advise 1'],
  ],
];

describe('the escalation ladder', () => {
  it.each(stories)('%s', (_, start, script, said) => {
    expect(play(start, script)).toEqual(said);
  });

  it('goes up to the highest model, three advices a level, three transient failures, by default', () => {
    expect(aLadder().rules).toEqual({
      max_level: 4,
      lowest_level: 0,
      max_advices_per_level: 3,
      max_transients: 3,
    });
  });

  it('keeps attempts and advice as they came, nothing else', () => {
    const state = tell(aStepLadder(), ['no_template g', 'transient', 'advised fix 1', 'transient', 'real h']);
    expect({ history: state.history, advice: state.advice }).toEqual({
      history: [
        { level: 0, label: 'static template', attempted_at: 1_000, error: 'error f', fingerprint: 'f' },
        { level: 1, label: 'fast model', attempted_at: 2_000, error: 'error h', fingerprint: 'h' },
      ],
      advice: [
        {
          from_level: 1,
          label: 'fast model',
          instructions: 'fix',
          suggested_executor_level: 1,
          fingerprint: 'f',
        },
      ],
    });
  });

  it('keeps advice that repeats itself, for it was given', () => {
    const { advice } = tell(aLadder(), ['real f', 'advised a', 'real f', 'advised a']);
    expect(advice.map(({ from_level, instructions }) => [from_level, instructions])).toEqual([
      [1, 'a'],
      [2, 'a'],
    ]);
  });

  it('counts an empty level 0 as the first failure of a job that has none', () => {
    const { history, command } = tell(aLadder(), ['no_template g', 'advised a', 'no_template g']);
    expect({ history: history.map(({ fingerprint }) => fingerprint), command }).toMatchObject({
      history: ['g'],
      command: { type: 'advise', from_level: 2, error: 'error g', fingerprint: 'g' },
    });
  });

  it('asks once more with what was wrong with the first answer', () => {
    expect(tell(aLadder({ start_level: 1 }), ['malformed g', 'transient']).command).toEqual({
      type: 'execute',
      level: 1,
      label: 'fast model',
      transients: 1,
      malformed: 'error g',
    });
  });

  it('teaches the last advice with the error that it answered', () => {
    const { command } = tell(aLadder(), ['real f', 'advised a 1', 'real g', 'advised b 1', 'succeeded']);
    expect(command).toMatchObject({
      lesson: { advice: { instructions: 'b', from_level: 2 }, attempt: { fingerprint: 'g', level: 1 } },
    });
  });

  it('teaches the last of many advices, with what it answered and not with what came after', () => {
    const script = ['real f', 'advised a 1', 'real g', 'advised b 1', 'real h', 'advised c 1', 'real i'];
    const { command } = tell(aLadder(), [...script, ...Array<string>(3).fill('unavailable'), 'succeeded']);
    expect(command).toMatchObject({
      type: 'succeed',
      level: 4,
      lesson: { advice: { instructions: 'c' }, attempt: { fingerprint: 'h' } },
    });
  });

  it('teaches an advice that answers no failure of the history with the last one', () => {
    const { history } = tell(aLadder(), ['real f', 'advised a 1', 'real g', 'advised b 1', 'real h']);
    const advice = [
      { from_level: 1, label: 'fast model', instructions: 'z', reasoning: 'because', fingerprint: 'none' },
    ];
    const { command } = tell(aLadder({ history, advice }), ['succeeded']);
    expect(command).toMatchObject({ lesson: { advice: advice[0], attempt: { fingerprint: 'h' } } });
  });

  it('teaches nothing when no advice was needed', () => {
    expect(tell(aStepLadder(), ['succeeded']).command).toEqual({ type: 'succeed', level: 0, lesson: null });
  });

  it('continues from stored lists: advice already given is spent', () => {
    const told = tell(aLadder(), ['real f', 'advised a', 'real f', 'advised b']);
    const stored = aLadder({ start_level: 0, history: told.history, advice: told.advice });
    expect(play(stored, ['real f'])).toEqual(['execute 0', 'advise 3']);
  });

  it('gives the reason for its stop, with the last error or the message of the last call', () => {
    expect([
      tell(aStepLadder(), ['no_template', 'timed_out']).command,
      applyLadder(aStepLadder(), { ...eventOf('budget'), error: 'no room' } as never).command,
    ]).toEqual([
      { type: 'stop', reason: 'time', error: 'error f' },
      { type: 'stop', reason: 'budget', error: 'no room' },
    ]);
  });

  it('keeps at most 8 KiB of an error', () => {
    const { error } = createAttempt({ ...attempt(0, 'f'), error: 'é'.repeat(100_000) });
    expect(Buffer.byteLength(error)).toBeGreaterThan(8_100);
    expect(Buffer.byteLength(error)).toBeLessThanOrEqual(8_192);
  });
});

function isPrefix(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.every((one, at) => JSON.stringify(one) === JSON.stringify(b[at]));
}

describe('a ladder after any events', () => {
  it('its lists only grow, and only by attempts that count', () => {
    fc.assert(
      fc.property(anyStart, anyEvents, (start, events) => {
        let state = start;
        for (const event of events) {
          const next = applyLadder(state, event);
          expect(isPrefix(state.history, next.history) && isPrefix(state.advice, next.advice)).toBe(true);
          if (event.type === 'failed' && event.class !== 'real' && event.class !== 'malformed') {
            expect(next.history).toBe(state.history);
          }
          state = next;
        }
      }),
    );
  });

  it('its state survives JSON', () => {
    fc.assert(
      fc.property(anyStart, anyEvents, (start, events) => {
        const state = events.reduce(applyLadder, start);
        const stored = events.reduce(
          (at, event) => JSON.parse(JSON.stringify(applyLadder(at, event))) as LadderState,
          start,
        );
        expect(stored).toStrictEqual(state);
      }),
    );
  });

  it('it stays between the lowest and the highest level after the first execution', () => {
    fc.assert(
      fc.property(anyStart, anyEvents, (start, events) => {
        const { lowest_level, max_level } = start.rules;
        for (let state = start, at = 0; at < events.length; at += 1) {
          state = applyLadder(state, events[at] as never);
          const { command } = state;
          const level =
            command.type === 'advise'
              ? command.from_level
              : command.type === 'execute'
                ? command.level
                : null;
          if (level === null || commandOf(state).startsWith(commandOf(start))) continue;
          expect(level).toBeGreaterThanOrEqual(lowest_level);
          expect(level).toBeLessThanOrEqual(max_level);
        }
      }),
    );
  });
});
