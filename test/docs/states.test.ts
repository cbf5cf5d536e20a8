/** The pictures of docs/contributing/states.md against changed machines. */

import { driveCall } from '@capstan/core/call/drive-call';
import { judgeOutcome } from '@capstan/core/call/judge';
import { InstanceState } from '@capstan/core/contracts/capability';
import { RunState, terminalRunStates } from '@capstan/core/contracts/run';
import { AttemptState, StepState } from '@capstan/core/contracts/run-step';
import { nextState } from '@capstan/core/fleet/instance-states';
import { applyEvent } from '@capstan/core/run/machine';
import { describe, expect, test } from 'vitest';
import { nextContact } from '../../packages/console/src/live/contact-states.ts';
import { drawAttempt, drawCall } from '../../scripts/docs/states/call.ts';
import { drawContact } from '../../scripts/docs/states/contact.ts';
import { drawStates } from '../../scripts/docs/states/diagram.ts';
import { drawInstance } from '../../scripts/docs/states/instance.ts';
import { drawRun, drawStep, exploreRuns } from '../../scripts/docs/states/run.ts';

/** Lines that only the first, and lines that only the second picture has. */
function compare(before: string, after: string): { gone: string[]; new: string[] } {
  const only = (one: string, other: string) =>
    one
      .split('\n')
      .filter((line) => !other.split('\n').includes(line))
      .map((line) => line.trim());
  return { gone: only(before, after), new: only(after, before) };
}

function statesIn(picture: string): Set<string> {
  return new Set(
    picture
      .split('\n')
      .flatMap((line) => /^ {2}(\S+) --> (\S+?)(?::|$)|^ {4}(\w+)$/.exec(line)?.slice(1) ?? []),
  );
}

const runs = exploreRuns();

describe('a changed transition changes the picture', () => {
  test('of a run', () => {
    const deaf = exploreRuns((state, event) => (event.type === 'timed_out' ? [] : applyEvent(state, event)));
    expect(compare(drawRun(runs), drawRun(deaf))).toEqual({
      gone: [
        'open --> failing: step_ended, timed_out',
        'failing --> failed: step_ended, decided',
        'paused --> failed: timed_out',
      ],
      new: ['open --> failing: step_ended', 'failing --> failed: step_ended'],
    });
  });

  test('of a step', () => {
    const never = exploreRuns((state, event) =>
      event.type === 'step_escalated' ? [] : applyEvent(state, event),
    );
    expect(compare(drawStep(runs), drawStep(never))).toEqual({
      gone: ['running --> escalating: step_escalated, step_waiting'],
      new: ['running --> escalating: step_waiting'],
    });
  });

  test('of a call, where its driver and where its retry table changes', async () => {
    const impatient: typeof driveCall = async (ports, request) => {
      const end = await driveCall(ports, request);
      return end.kind === 'closed' ? { kind: 'cancelled' } : end;
    };
    expect(compare(await drawCall(), await drawCall(impatient))).toEqual({
      gone: [
        'settle --> cancelled: cancelled',
        'claim --> closed: closed',
        'settle --> closed: not accepted',
        'claim --> cancelled: while cancelled – no instance now',
        'closed --> [*]',
      ],
      new: [
        'settle --> cancelled: cancelled, not accepted',
        'claim --> cancelled: closed,<br/>while cancelled – no instance now',
      ],
    });
  });

  test('of an attempt', () => {
    const generous: typeof judgeOutcome = (outcome, facts) => ({
      ...judgeOutcome(outcome, facts),
      ...(outcome.kind === 'abandoned' ? { attemptState: 'released' } : {}),
    });
    expect(compare(drawAttempt(), drawAttempt(generous)).new).toEqual([
      'open --> released: overloaded, not_sent, abandoned,<br/>unsent, withheld',
      'open --> lost: lost, timeout, cancelled',
    ]);
  });

  test('of an instance', () => {
    const trusting: typeof nextState = (facts, event) =>
      event.kind === 'silent' ? null : nextState(facts, event);
    expect(compare(drawInstance(), drawInstance(trusting))).toEqual({
      gone: ['up --> suspect: silent, refused_connection,<br/>probe_failed'],
      new: ['up --> suspect: refused_connection, probe_failed'],
    });
  });
});

describe('the contact of a tab', () => {
  test('changes the picture with its machine', () => {
    const trusting: typeof nextContact = (state, event) =>
      event.kind === 'unanswered' ? { state, actions: [] } : nextContact(state, event);
    expect(compare(drawContact(), drawContact(trusting))).toEqual({
      gone: ['connecting --> lost: unanswered, told', 'polling --> lost: unanswered, told'],
      new: ['connecting --> lost: told', 'polling --> lost: told'],
    });
  });
});

test('every stored state of an instance and of an attempt is drawn', () => {
  const stored = InstanceState.options.filter((state) => !['draining', 'warming', 'evicted'].includes(state));
  expect([...statesIn(drawInstance())]).toEqual(expect.arrayContaining(stored));
  expect([...statesIn(drawAttempt())]).toEqual(expect.arrayContaining(AttemptState.options));
});

test('a run and a step end in every state in which the API shows an end', () => {
  const ends = StepState.options.slice(StepState.options.indexOf('succeeded'));
  expect([...statesIn(drawStep(runs))]).toEqual(expect.arrayContaining(ends));
  const shown = RunState.options.filter((state) => terminalRunStates.has(state));
  expect([...statesIn(drawRun(runs))]).toEqual(expect.arrayContaining(shown));
});

describe('a diagram', () => {
  const frame = { name: 'both', members: ['a', 'b'] };
  const frameLines = '  state both {\n    a\n    b\n  }\n';
  test.each([
    [
      'joins parallel arrows',
      [
        ['a', 'b', 'x'],
        ['a', 'b', 'y'],
        ['a', 'b', 'x'],
      ],
      undefined,
      '  a --> b: x, y\n',
    ],
    [
      'leaves out an arrow to itself',
      [
        ['a', 'a', 'x'],
        ['a', 'b', ''],
      ],
      undefined,
      '  a --> b\n',
    ],
    [
      'breaks long labels',
      [
        ['a', 'b', 'x'.repeat(20)],
        ['a', 'b', 'y'.repeat(20)],
      ],
      undefined,
      `  a --> b: ${'x'.repeat(20)},<br/>${'y'.repeat(20)}\n`,
    ],
    [
      'joins arrows that leave all states of a frame',
      [
        ['a', 'c', 'x'],
        ['b', 'c', 'x'],
        ['b', 'c', 'y'],
      ],
      frame,
      `${frameLines}  both --> c: x\n  b --> c: y\n`,
    ],
    [
      'joins arrows that enter all states of a frame',
      [
        ['c', 'a', 'x'],
        ['c', 'b', 'x'],
        ['c', 'a', 'y'],
      ],
      frame,
      `${frameLines}  c --> both: x\n  c --> a: y\n`,
    ],
    [
      'keeps arrows inside a frame',
      [
        ['a', 'b', 'x'],
        ['b', 'a', 'x'],
      ],
      frame,
      `${frameLines}  a --> b: x\n  b --> a: x\n`,
    ],
  ] as const)('%s', (_, arrows, framed, drawn) => {
    const text = drawStates(
      arrows.map(([from, to, label]) => ({ from, to, label })),
      framed,
    );
    expect(text).toBe(`\`\`\`mermaid\nstateDiagram-v2\n${drawn}\`\`\``);
  });
});
