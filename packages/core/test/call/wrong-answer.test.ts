import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { judgeOutcome } from '../../src/call/judge.ts';
import type { CallOutcome } from '../../src/call/outcome.ts';
import { outputInvalid } from '../../src/call/outcome.ts';
import {
  addWrongAnswer,
  countWrongAnswers,
  noWrongAnswers,
  readFault,
  writeFault,
} from '../../src/call/wrong-answer.ts';
import type { Failure } from '../../src/contracts/primitives.ts';

const byModel = {
  kind: 'rejected',
  status: 422,
  message: 'no JSON',
  errorCode: 'model_answer_invalid',
} as const;
const byOwnSchema = {
  ...byModel,
  message: 'the output does not match',
  errorCode: 'output_invalid',
} as const;
const wrong: [CallOutcome, object][] = [
  [
    outputInvalid([{ pointer: '/n', message: 'must be integer' }]),
    {
      code: 'output_invalid',
      message: 'the answer does not match the output schema: /n must be integer',
      errors: [{ pointer: '/n', message: 'must be integer' }],
    },
  ],
  [byModel, { code: 'model_answer_invalid', message: 'no JSON' }],
  [byOwnSchema, { code: 'output_invalid', message: 'the output does not match' }],
];

describe('a wrong answer', () => {
  it.each(wrong)(
    '%j is asked for again as often as the step allows, and costs what it costs',
    (outcome, fault) => {
      const facts = { countedBefore: 2, retryMax: 3 };
      const once = judgeOutcome(outcome, facts);
      expect(once.next).toBe('failed');
      for (const wrongBefore of [0, 1, 2, 3]) {
        const verdict = judgeOutcome(outcome, { ...facts, wrongBefore, wrongMax: 2 });
        expect(verdict).toEqual({ ...once, next: wrongBefore < 2 ? 'again' : 'failed' });
        expect(verdict.counted).toBe(false);
        expect(addWrongAnswer({ count: wrongBefore, fault: null }, verdict.error)).toEqual({
          count: wrongBefore + 1,
          fault,
        });
      }
    },
  );

  it('is the first one where none is known', () => {
    expect(judgeOutcome(byModel, { countedBefore: 0, retryMax: 3, wrongMax: 1 }).next).toBe('again');
  });

  it('is asked for again before its text makes it a temporary refusal', () => {
    const facts = { countedBefore: 3, retryMax: 3, transientTexts: ['no json'], wrongMax: 1 };
    expect(judgeOutcome(byModel, { ...facts, wrongBefore: 0 }).next).toBe('again');
    expect(judgeOutcome(byModel, { ...facts, wrongBefore: 1 })).toMatchObject({
      next: 'failed',
      counted: true,
    });
  });

  it.each<CallOutcome>([
    { kind: 'rejected', status: 422, message: 'n is odd' },
    { kind: 'rejected', status: 422, message: 'n is odd', errorCode: 'provider_refused' },
    { kind: 'failed', status: 500, message: 'broken', errorCode: 'output_invalid' },
    { kind: 'malformed', message: 'a list' },
    { kind: 'too_large', limitBytes: 1 },
    { kind: 'lost', message: 'broken' },
    { kind: 'cancelled' },
  ])('is not %j', (outcome) => {
    const facts = { countedBefore: 0, retryMax: 3 };
    const verdict = judgeOutcome(outcome, { ...facts, wrongBefore: 0, wrongMax: 100 });
    expect(verdict).toEqual(judgeOutcome(outcome, facts));
    expect(addWrongAnswer(noWrongAnswers, verdict.error)).toBe(noWrongAnswers);
  });

  it('is counted among the failures of a call, of which the last one is the fault', () => {
    const failures = [...wrong.map(([outcome]) => outcome), { kind: 'lost', message: '' } as const].map(
      (outcome) => judgeOutcome(outcome, { countedBefore: 0, retryMax: 3 }).error as Failure,
    );
    expect(countWrongAnswers(failures)).toEqual({ count: 3, fault: wrong[2]?.[1] });
    expect(countWrongAnswers([])).toEqual({ count: 0, fault: null });
  });
});

describe('the header of a fault', () => {
  const text = fc.string({ unit: 'binary', maxLength: 6_000 });
  const faults = fc.record(
    {
      code: fc.constantFrom('output_invalid', 'model_answer_invalid'),
      message: text,
      errors: fc.array(fc.record({ pointer: text, message: text }), { minLength: 1, maxLength: 14 }),
    },
    { requiredKeys: ['code', 'message'] },
  );

  it('is one line of printable ASCII with at most 4,096 characters, whatever the fault is', () => {
    fc.assert(
      fc.property(faults, (fault) => {
        const header = writeFault(fault);
        expect(header).toMatch(/^[ -~]{1,4096}$/);
        const read = readFault(header);
        expect(read?.code).toBe(fault.code);
        const errors = fault.errors?.slice(0, read?.errors?.length ?? 0);
        expect(read?.errors ?? []).toEqual(errors ?? []);
      }),
    );
  });

  it.each([
    { code: 'output_invalid', message: 'n fehlt – «n»\n\u0000', errors: [{ pointer: '', message: '必要' }] },
    { code: 'model_answer_invalid', message: '\u{1f600}' },
  ])('is read as it was written: %j', (fault) => {
    expect(readFault(writeFault(fault))).toEqual(fault);
  });

  it('keeps the beginning of a long message', () => {
    const fault = { code: 'output_invalid', message: `n: ${'\u{1f600}'.repeat(3_000)}` };
    expect(readFault(writeFault(fault))?.message).toMatch(/^n: (?:\u{1f600})+…$/u);
  });

  it('has no findings where there are none', () => {
    expect(writeFault({ code: 'c', message: 'm' })).toBe('{"code":"c","message":"m"}');
    expect(readFault('{"code":"c","message":"m","errors":"none"}')).toEqual({ code: 'c', message: 'm' });
  });

  it('keeps as many findings as fit, from the first one on', () => {
    const errors = ['/a', '/b', '/c'].map((pointer) => ({ pointer, message: 'x'.repeat(1_500) }));
    const read = readFault(writeFault({ code: 'c', message: 'm', errors }));
    expect(read?.errors).toEqual(errors.slice(0, 2));
  });

  it('fills its length exactly', () => {
    const header = (message: string, errors?: { pointer: string; message: string }[]) =>
      writeFault({ code: 'c', message, ...(errors === undefined ? {} : { errors }) });
    const full = (written: (text: string) => string) => {
      const wide = '\u00e9'.repeat(500);
      const text = wide + 'x'.repeat(4_096 - written(wide).length);
      expect(written(text)).toHaveLength(4_096);
      return text;
    };
    const message = full((text) => header(text));
    expect(readFault(header(message))?.message).toBe(message);
    const finding = full((text) => header('m', [{ pointer: '', message: text }]));
    expect(readFault(header('m', [{ pointer: '', message: finding }]))?.errors).toHaveLength(1);
  });

  it('halves a message until it fits', () => {
    expect(readFault(writeFault({ code: 'c', message: 'x'.repeat(3_000) }))?.message).toHaveLength(2_000);
    expect(readFault(writeFault({ code: 'c', message: '\u00e9'.repeat(3_000) }))?.message).toHaveLength(500);
  });

  it('is read as far as it has findings, ten of them at most', () => {
    const errors = [1, null, { pointer: '/a' }, { message: 'x' }, { pointer: '/b', message: 'y', more: 1 }];
    const read = (list: unknown) =>
      readFault(JSON.stringify({ code: 'c', message: 'm', errors: list }))?.errors;
    expect(read(errors)).toEqual([{ pointer: '/b', message: 'y' }]);
    expect(read(Array.from({ length: 12 }, (_, at) => ({ pointer: `/${at}`, message: 'x' })))).toHaveLength(
      10,
    );
  });

  it.each(['', 'no JSON', '7', '[]', '{"code":1,"message":"m"}', '{"code":"c"}'])(
    'is no fault if it is %j',
    (header) => {
      expect(readFault(header)).toBeUndefined();
    },
  );
});
