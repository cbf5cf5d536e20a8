import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isLong } from '../../../../test/support/long.ts';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import { runs } from '../../../../test/support/runs.ts';
import type { Json } from '../../src/contracts/primitives.ts';
import { evaluateCondition, readCondition } from '../../src/expression/condition.ts';
import { evaluateTemplate } from '../../src/expression/evaluate.ts';
import type { ExpressionScope } from '../../src/expression/evaluation.ts';
import { ExpressionError, ExpressionSyntaxError, expressionLimits } from '../../src/expression/language.ts';
import { Meter, workLimits } from '../../src/expression/meter.ts';
import { readTemplate } from '../../src/expression/template.ts';
import { jsonTypeOf } from '../../src/json/values.ts';
import { aJob, aScope } from './a-scope.ts';
import { hostileJson, hostileScope, hostileText, readsOfPrototypes, unread } from './hostile.ts';

const trap = globalThis as { __hit?: unknown };
beforeEach(() => {
  delete trap.__hit;
});
afterEach(() => {
  expect(trap.__hit).toBeUndefined();
});

type Ending = { readonly value: Json } | { readonly error: unknown };

function endingOf(evaluate: () => Json): Ending {
  try {
    return { value: evaluate() };
  } catch (error) {
    return { error };
  }
}

/** What became of a template; undefined for one that was refused. */
function run(text: Json, scope: ExpressionScope, meter?: Meter): Ending | undefined {
  const { template, errors } = readTemplate(text);
  for (const error of errors) expect(error).toBeInstanceOf(ExpressionSyntaxError);
  return errors.length > 0 ? undefined : endingOf(() => evaluateTemplate(template, scope, meter));
}

function expectSound(ending: Ending | undefined): void {
  if (ending === undefined) return;
  if ('error' in ending) expect(ending.error).toBeInstanceOf(ExpressionError);
  else expectJson(ending.value);
}

function expectJson(value: unknown): void {
  expect(jsonTypeOf(value)).not.toBeNull();
  if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) expectJson(part);
}

/** Changes every list and object of a value. */
function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const part of Object.values(value)) spoil(part);
  if (Array.isArray(value)) value.push('spoiled');
  else Object.assign(value, { spoiled: true });
}

/** Of what is drawn by `npm run test:long`. */
const share = isLong ? 1 : 0.4;

describe('any template on any scope', () => {
  it('ends in JSON or in an error of the language', () => {
    const seen = { value: 0, error: 0, refused: 0 };
    fc.assert(
      fc.property(hostileText, hostileScope, (text, scope) => {
        const ending = run({ in: [text] }, scope);
        expectSound(ending);
        seen[ending === undefined ? 'refused' : 'error' in ending ? 'error' : 'value']++;
      }),
      { numRuns: runs(400) },
    );
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(runs(3));
  });

  it('is a boolean, or such an error, as a when value', () => {
    fc.assert(
      fc.property(hostileText, fc.boolean(), hostileScope, (text, isBare, scope) => {
        const { condition, errors } = readCondition(isBare ? text.slice(2, -2) : text);
        for (const error of errors) expect(error).toBeInstanceOf(ExpressionSyntaxError);
        const ending = endingOf(() => evaluateCondition(condition, scope));
        if ('error' in ending) expect(ending.error).toBeInstanceOf(ExpressionError);
        else expect(ending.value).toBeTypeOf('boolean');
      }),
      { numRuns: runs(100 * share) },
    );
  });

  it('reads nothing that is inherited', () => {
    fc.assert(
      fc.property(hostileText, hostileScope, (text, scope) => {
        const condition = text.slice(2, -2);
        const reads = readsOfPrototypes(() => {
          const { template, errors } = readTemplate({ in: [text] });
          if (errors.length === 0) endingOf(() => evaluateTemplate(template, scope));
          endingOf(() => evaluateCondition(readCondition(condition).condition, scope));
        });
        expect(reads).toEqual([]);
      }),
      { numRuns: runs(160 * share) },
    );
  });

  it('calls no function of the scope', () => {
    const call = () => {
      trap.__hit = 'called';
      return 'called';
    };
    const names = ['toString', 'valueOf', 'toJSON', 'then', Symbol.toPrimitive, 'a'];
    const own = Object.fromEntries(names.map((name) => [name, call]));
    const scope = aScope({ job: { a: own, b: [call], l: [own] } as never, item: call as never });
    fc.assert(
      fc.property(hostileText, (text) => expectSound(run([text], scope))),
      { numRuns: runs(100 * share) },
    );
  });

  it('shares nothing that changes with its scope or with its own text', () => {
    const part = fc.oneof(hostileText, hostileJson);
    fc.assert(
      fc.property(fc.array(part, { maxLength: 3 }), hostileScope, (parts, scope) => {
        const { template, errors } = readTemplate([...parts, '{{ job.a }}', '{{ job.l[*] }}', { a: [] }]);
        fc.pre(errors.length === 0);
        const before = JSON.stringify(scope);
        const [first, second] = [0, 1].map(() => endingOf(() => evaluateTemplate(template, scope)));
        if (first === undefined || second === undefined || 'error' in first) return;
        spoil(first.value);
        expect(JSON.stringify(scope)).toBe(before);
        const third = endingOf(() => evaluateTemplate(template, scope));
        expect(JSON.stringify(third)).toBe(JSON.stringify(second));
      }),
      { numRuns: runs(100 * share) },
    );
  });

  it('never becomes a template again', () => {
    fc.assert(
      fc.property(hostileText, hostileScope, (text, scope) => {
        const ending = run([text, '{{ job.v }}', 'x{{ job.v }}', '{{ job.v | json }}'], {
          ...scope,
          job: { ...scope.job, v: unread },
        });
        if (ending === undefined || 'error' in ending) return;
        expect((ending.value as Json[]).slice(1)).toEqual([unread, `x${unread}`, JSON.stringify(unread)]);
        expect(JSON.stringify(ending.value)).not.toContain('MARKER');
      }),
      { numRuns: runs(100 * share) },
    );
  });
});

/** Far above what any of these takes (mostly tens of milliseconds), far below what work that is not linear takes. */
const enoughMs = 20_000;

function expectQuick(act: () => void): void {
  const spentMs = countProcessorMs();
  act();
  expect(spentMs()).toBeLessThan(enoughMs);
}

const long = expressionLimits.stringBytes;
function fill(part: string, room = long - 64): string {
  return part.repeat(Math.floor(room / part.length));
}

const longTexts: Record<string, string> = {
  opening: fill('{{'),
  'open parentheses': `{{ ${fill('(')}`,
  'closed parentheses': `{{ ${fill('(', long / 2)}1${fill(')', long / 2 - 64)} }}`,
  negations: `{{ (${fill('!')}true) }}`,
  'a path': `{{ job${fill('.a')} }}`,
  brackets: `{{ job${fill('[')} }}`,
  quotes: `{{ ${fill('"')} }}`,
  'an open string': `{{ "${fill('a')}`,
  escapes: `{{ "${fill('\\u0041')}" }}`,
  backslashes: `{{ "${fill('\\')}" }}`,
  digits: `{{ ${fill('9')} }}`,
  exponents: `{{ 1${fill('e1')} }}`,
  zeros: `{{ 0.${fill('0')} }}`,
  spaces: `{{ ${fill(' ')} }}`,
  'many expressions': fill('{{ job.a }}'),
  defaults: `{{ job.x${fill(' ?? job.x')} }}`,
  comparisons: `{{ (1${fill(' == 1')}) }}`,
  conditions: `{{ (job.t${fill(' && job.t')}) }}`,
  'filters that double': `{{ job.a${fill(' | json')} }}`,
  'a long name': `{{ ${fill('a')} }}`,
  'a long filter': `{{ job.a | ${fill('a')} }}`,
  'astral signs': `{{ '${fill('😀', long / 2)}' }}`,
};

describe('the longest text', () => {
  it.each(Object.entries(longTexts))('ends soon: %s', (_, text) => {
    const scope = aJob({ a: 'a"', t: true });
    expectQuick(() => expectSound(run(text, scope)));
    expectQuick(() => {
      const { condition, errors } = readCondition(text.slice(2, -2));
      if (errors.length === 0) endingOf(() => evaluateCondition(condition, scope));
    });
  });

  it('ends soon, whatever it holds', () => {
    fc.assert(
      fc.property(fc.array(hostileText, { minLength: 1, maxLength: 8 }), hostileScope, (texts, scope) => {
        expectQuick(() => expectSound(run(fill(texts.join(' ')), scope)));
      }),
      { numRuns: runs(6) },
    );
  });
});

function nested(depth: number, open: string, close: string): Json {
  return JSON.parse(open.repeat(depth) + close.repeat(depth)) as Json;
}

/** Sizes and the work allowed for them are a twentieth of the real ones, unless the test is long. */
const part = isLong ? 1 : 0.05;
const count = 200_000 * part;
const list = Array.from({ length: count }, (_, index) => `${index}`);
const big: Record<string, Json> = {
  a: list,
  b: [...list],
  empty: list.map(() => ''),
  keys: Object.fromEntries(list.map((name) => [name, 0])),
  text: 'a'.repeat(1_000_000),
  copy: `${'a'.repeat(999_999)}b`,
  needle: `${'a'.repeat(250_000)}b${'a'.repeat(250_000)}`,
  quotes: '"'.repeat(1_000),
  rows: list.map((id) => ({ id, tags: ['x'] })),
};

describe('a template that asks for far more work than it is long', () => {
  it.each<[what: string, template: Json]>([
    ['builds the same list', Array(1_000).fill('{{ job.a }}')],
    ['builds the same text', fill('{{ job.text }}')],
    ['builds every item', Array(1_000).fill('{{ job.rows[*].tags[*] }}')],
    ['joins with a long text', `{{ job.a | join("${fill('x', 60_000)}") }}`],
    ['joins nothing again and again', Array(1_000).fill('{{ job.empty | join("") }}')],
    ['writes JSON of JSON', `{{ job.quotes${' | json'.repeat(60)} }}`],
    ['counts keys', `{{ (0${fill(' == (job.keys | length)')}) }}`],
    ['compares lists', `{{ (true${fill(' && job.a == job.b')}) }}`],
    ['compares texts', `{{ (false${fill(' || job.text == job.copy')}) }}`],
    ['orders texts', `{{ (true${fill(' && job.text < job.copy')}) }}`],
    ['looks into lists', `{{ (false${fill(' || 1 in job.a')}) }}`],
    ['looks into texts', `{{ (false${fill(' || "b" in job.text')}) }}`],
  ])('is stopped when it %s', (_, template) => {
    expectQuick(() => {
      const ending = run(template, aJob(big), new Meter(workLimits.run * part));
      expect(ending).toEqual({ error: expect.any(ExpressionError) });
      expect(ending).toMatchObject({
        error: { message: expect.stringMatching(/units of work/) },
      });
    });
  });

  it.each<[what: string, template: Json, value: Json]>([
    ['looks for a text that nearly matches everywhere', '{{ (job.needle in job.text) }}', false],
    ['asks for keys that are missing', `{{ job.keys.x${fill(' ?? job.keys.x')} ?? "none" }}`, 'none'],
  ])('ends soon when it %s', (_, template, value) => {
    expectQuick(() => expect(run(template, aJob(big))).toEqual({ value }));
  });

  it.each([
    ['lists', nested(100_000, '[', ']')],
    ['objects', JSON.parse(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`) as Json],
  ])('is no matter of the stack: %s', (_, deep) => {
    const scope = aJob({ a: deep, b: deep, c: [deep] });
    for (const text of ['{{ job.a }}', '{{ job.a | json }}', '{{ (job.a in job.c) }}', '{{ job.a ?? 1 }}']) {
      const ending = run(text, scope);
      if (ending !== undefined && 'error' in ending) {
        expect(ending.error).toMatchObject({ message: expect.stringMatching(/nests deeper than 500/) });
      }
    }
    const twin = JSON.parse('[[1]]') as Json;
    expect(run('{{ (job.a != job.b) }}', aJob({ a: deep, b: twin }))).toEqual({ value: true });
  });
});
