import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/contracts/primitives.ts';
import type { CorrectedInput, CorrectionTask } from '../../src/ladder/correction.ts';
import type { ExecutionEnd } from '../../src/ladder/execute-correction.ts';
import {
  type CorrectionAnswer,
  type CorrectionPorts,
  executeCorrection,
  executeDecided,
  interruptionMs,
} from '../../src/ladder/execute-correction.ts';
import type { RankedSkill } from '../../src/skills/match.ts';
import { aSkill } from '../skills/a-skill.ts';
import { rateSpec, refusal } from './fake-ports.ts';

const succeeded: ExecutionEnd = { kind: 'succeeded' };
const refused: ExecutionEnd = { kind: 'failed', class: 'real', error: refusal };

function aTemplate(id: string, rate: number): RankedSkill {
  const template = JSON.stringify([{ op: 'replace', path: '/rate', value: rate }]);
  return { skill: aSkill({ id, template }), groups: {} };
}

interface Setting {
  readonly task?: Partial<CorrectionTask>;
  readonly stored?: readonly CorrectedInput[];
  readonly templates?: readonly RankedSkill[];
  readonly answer?: CorrectionAnswer;
  readonly ends?: readonly ExecutionEnd[];
  readonly error?: string | null;
}

/** What ran is written down; the ends are those that were given, then refusals. */
function aCorrection({
  task,
  stored = [],
  templates = [],
  answer,
  ends = [],
  error = 'rate is odd',
}: Setting) {
  const ran: string[] = [];
  const shown = [aTemplate('shown', 1)];
  const ports: CorrectionPorts = {
    task: {
      capability: 'transcode',
      repair: 'off',
      spec: rateSpec,
      original: { rate: 7 },
      current: { rate: 7 },
      failed: [{ rate: 7 }],
      ...task,
    },
    error,
    stored: async () => stored,
    matchTemplates: async () => templates,
    ask: async () => ({ answer: answer ?? { kind: 'unavailable' }, model: 'small-1', skills: shown }),
    run: async ({ input, source, choice }) => {
      ran.push(`${choice} ${JSON.stringify(input)} ${source}`);
      return { input, source, end: ends[ran.length - 1] ?? refused };
    },
  };
  return { ports, ran, shown };
}

function anInput(input: Json, used: readonly string[] = []): CorrectionAnswer {
  return { kind: 'input', input, used };
}

describe('level 0', () => {
  it('runs the templates in order until one succeeds, and reports which did and the failures before it', async () => {
    const templates = [aTemplate('one', 8_000), aTemplate('two', 9_000), aTemplate('three', 9_500)];
    const { ports, ran } = aCorrection({ templates, ends: [refused, succeeded] });
    expect(await executeCorrection(ports, 0)).toEqual({
      end: succeeded,
      level: 0,
      model: null,
      skills: templates,
      used: ['one', 'two'],
      solved_by: 'two',
      failed_before: [refusal],
      input: { rate: 9_000 },
    });
    expect(ran).toEqual(['0 {"rate":8000} one', '1 {"rate":9000} two']);
  });

  it('ends with the last failure, and names those before it', async () => {
    const other = { code: 'input_rejected', message: 'HTTP 422: too low', status: 422 };
    const templates = [aTemplate('one', 8_000), aTemplate('two', 9_000), aTemplate('three', 9_500)];
    const last: ExecutionEnd = { kind: 'failed', class: 'real', error: other };
    const { ports } = aCorrection({ templates, ends: [refused, refused, last] });
    expect(await executeCorrection(ports, 0)).toEqual({
      end: last,
      level: 0,
      model: null,
      skills: templates,
      used: ['one', 'two', 'three'],
      solved_by: null,
      failed_before: [refusal, refusal],
      input: { rate: 9_500 },
    });
  });

  it.each([
    ['transient', { kind: 'failed', class: 'transient', error: refusal }],
    ['interrupted', { kind: 'interrupted', delayMs: 5 }],
  ] as const)('goes no further when one is %s, which proves nothing about its input', async (_, end) => {
    const templates = [aTemplate('one', 8_000), aTemplate('two', 9_000)];
    const { ports, ran } = aCorrection({ templates, ends: [end] });
    expect(await executeCorrection(ports, 0)).toMatchObject({ end, solved_by: null, failed_before: [] });
    expect(ran).toEqual(['0 {"rate":8000} one']);
  });

  it('L10: runs first what it has stored, and nothing twice', async () => {
    const templates = [aTemplate('one', 8_000), aTemplate('two', 9_000)];
    const stored = [{ input: { rate: 8_000 }, source: 'retired' }];
    const { ports, ran } = aCorrection({ templates, stored });
    expect((await executeCorrection(ports, 0)).used).toEqual(['retired', 'two']);
    expect(ran).toEqual(['0 {"rate":8000} retired', '1 {"rate":9000} two']);
  });

  it('credits no skill with what the repair did', async () => {
    const stored = [{ input: { rate: 8_000 }, source: 'repair' }];
    const { ports } = aCorrection({ stored, ends: [succeeded] });
    expect(await executeCorrection(ports, 0)).toMatchObject({ end: succeeded, used: [], solved_by: null });
  });

  it('reports that it has nothing to run', async () => {
    const templates = [aTemplate('low', 1)];
    const { ports, ran } = aCorrection({ templates });
    const message = 'level 0 has no template for an input of transcode';
    expect(await executeCorrection(ports, 0)).toMatchObject({
      end: { kind: 'no_template', error: { code: 'no_template', message } },
      level: 0,
      skills: templates,
      used: [],
    });
    expect(ran).toEqual([]);
  });
});

describe('a level with a model', () => {
  it('runs the input that it answers, under its label', async () => {
    const { ports, ran, shown } = aCorrection({
      answer: anInput({ rate: 8_000 }, ['shown']),
      ends: [succeeded],
    });
    expect(await executeCorrection(ports, 2)).toEqual({
      end: succeeded,
      level: 2,
      model: 'small-1',
      skills: shown,
      used: ['shown'],
      solved_by: null,
      failed_before: [],
      input: { rate: 8_000 },
    });
    expect(ran).toEqual(['0 {"rate":8000} capable model']);
  });

  it('L10: asks no model when it has stored an answer', async () => {
    const stored = [{ input: { rate: 8_000 }, source: 'fast model' }];
    const { ports, ran } = aCorrection({ stored, answer: anInput({ rate: 9_000 }), ends: [succeeded] });
    expect(await executeCorrection(ports, 1)).toMatchObject({
      end: succeeded,
      level: 1,
      model: null,
      input: { rate: 8_000 },
    });
    expect(ran).toEqual(['0 {"rate":8000} fast model']);
  });

  it.each([
    ['that is not there', { kind: 'unavailable' }, { kind: 'unavailable' }],
    [
      'whose call failed',
      { kind: 'failed', class: 'config', error: refusal },
      { kind: 'failed', class: 'config', error: refusal },
    ],
    [
      'whose answer has no form',
      { kind: 'malformed', message: 'no JSON' },
      { kind: 'failed', class: 'malformed', error: { code: 'output_invalid', message: 'no JSON' } },
    ],
    [
      'that gives up',
      { kind: 'gave_up', reason: 'too hard' },
      { kind: 'gave_up', error: { code: 'gave_up', message: 'the executor gave up: too hard' } },
    ],
    [
      'whose input is invalid',
      anInput({ rate: 'x' }),
      {
        kind: 'failed',
        class: 'real',
        error: {
          code: 'input_invalid',
          message: 'the corrected input does not match the input schema: /rate must be integer',
        },
      },
    ],
    [
      'L11: whose input has failed before, with the error of then',
      anInput({ rate: 44_101 }),
      { kind: 'failed', class: 'real', error: { code: 'input_rejected', message: 'rate is odd' } },
    ],
  ] as const)('runs nothing of a model %s', async (_, answer, end) => {
    const { ports, ran, shown } = aCorrection({ answer, task: { failed: [{ rate: 44_101 }, { rate: 7 }] } });
    expect(await executeCorrection(ports, 1)).toEqual({
      end,
      level: 1,
      model: 'small-1',
      skills: shown,
      used: [],
      solved_by: null,
      failed_before: [],
    });
    expect(ran).toEqual([]);
  });

  it('names the skills that an input used which is refused', async () => {
    const { ports } = aCorrection({ answer: anInput({ rate: 1 }, ['shown']) });
    expect((await executeCorrection(ports, 1)).used).toEqual(['shown']);
  });

  it('reports itself that an input has failed before when no error is known', async () => {
    const { ports } = aCorrection({
      answer: anInput({ rate: 8_000 }),
      error: null,
      task: { failed: [{ rate: 8_000 }] },
    });
    expect((await executeCorrection(ports, 1)).end).toMatchObject({
      error: { code: 'input_rejected', message: 'this input has failed before' },
    });
  });

  it('comes again after a second when the caller has gone', async () => {
    const { ports } = aCorrection({ answer: { kind: 'interrupted' } });
    expect(await executeCorrection(ports, 1)).toMatchObject({
      end: { kind: 'interrupted', delayMs: interruptionMs },
      level: 1,
    });
  });
});

it.each([0, 1])(
  'level %d tries again later while no instance has sent a schema of its input',
  async (level) => {
    const { ports, ran } = aCorrection({ task: { spec: null }, answer: anInput({ rate: 8_000 }) });
    const message = 'no instance of transcode has said what input it takes';
    expect(await executeCorrection(ports, level)).toMatchObject({
      level,
      end: { kind: 'failed', class: 'transient', error: { code: 'no_instance', message } },
    });
    expect(ran).toEqual([]);
  },
);

describe('an input that a person decided on', () => {
  it('is run, also when it has failed before', async () => {
    const { ports, ran } = aCorrection({ task: { failed: [{ rate: 8_000 }] }, ends: [succeeded] });
    expect(await executeDecided(ports, { input: { rate: 8_000 }, source: 'review:rev_1' })).toEqual(
      succeeded,
    );
    expect(ran).toEqual(['0 {"rate":8000} review:rev_1']);
  });

  it('is not run when it is invalid', async () => {
    const { ports, ran } = aCorrection({});
    expect(await executeDecided(ports, { input: { rate: 1 }, source: 'review:rev_1' })).toEqual({
      kind: 'failed',
      class: 'real',
      error: {
        code: 'input_invalid',
        message: 'the corrected input does not match the input schema: /rate must be >= 8000',
      },
    });
    expect(ran).toEqual([]);
  });
});
