/** That everything is charged, by its true growth, and that a unit takes about the same time wherever it is spent. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import { runs } from '../../../../test/support/runs.ts';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { evaluateTemplate } from '../../src/expression/evaluate.ts';
import { knownFilters } from '../../src/expression/filters.ts';
import { Meter, workLimits } from '../../src/expression/meter.ts';
import { type CompiledTemplate, compileTemplate } from '../../src/expression/template.ts';
import { aJob } from './a-scope.ts';
import {
  conditionTemplate,
  filterTemplate,
  heavyConditions,
  heavyFilters,
  heavyValues,
  jobOf,
  repeated,
  work,
} from './heavy-work.ts';

/** They look at their value as a whole, or at one item. */
const constant: ReadonlySet<string> = new Set(['string', 'bool', 'length', 'first', 'last', 'at', 'default']);

const filters = Object.entries(heavyFilters).flatMap(([name, texts]) =>
  texts.map((text) => ({ name, text })),
);
const names = Object.keys(heavyValues(10));
const filter = fc.constantFrom(...filters);
const value = fc.constantFrom(...names);

/** Of any value or size: whatever is added to the language is added here. */
const anyWork = fc.oneof(
  filter.map(({ text }) => filterTemplate(text)),
  fc.constantFrom(...heavyConditions).map(conditionTemplate),
  fc
    .constantFrom<Json>('{{ job.v }}', 'a {{ job.v }} b', { a: ['{{ job.v }}'] })
    .map((text) => compileTemplate(text)),
);

function unitsOf(template: CompiledTemplate, job: JsonObject): number {
  return work(template, job, new Meter(1e12)).units;
}

function valueNamed(name: string, size: number): Json {
  return heavyValues(size)[name] ?? null;
}

/** Its content, which is read or moved at least. */
function sizeOf(of: Json): number {
  if (typeof of === 'string') return of.length;
  return typeof of === 'object' && of !== null ? Object.keys(of).length : 0;
}

describe('the work of expressions', () => {
  it('is tried for every filter', () => {
    expect(Object.keys(heavyFilters).sort()).toEqual(Object.keys(knownFilters).sort());
  });

  it('of a filter is at least that of reading its value', () => {
    const few = unitsOf(conditionTemplate('job.v == 0'), jobOf(1));
    fc.assert(
      fc.property(filter, value, fc.integer({ min: 1_000, max: 5_000 }), ({ name, text }, of, size) => {
        const job = jobOf(valueNamed(of, size));
        fc.pre(!constant.has(name));
        const units = unitsOf(filterTemplate(text), job);
        const isRefused = units - few < 1_000 && units - few >= 500; // an error of a wrong type
        if (!isRefused) expect(units - few).toBeGreaterThanOrEqual(sizeOf(job.v ?? null) / 8);
      }),
      { numRuns: runs(300) },
    );
  });

  it('grows with its values, and hardly faster than they do', () => {
    fc.assert(
      fc.property(anyWork, value, (template, of) => {
        const [small, large] = [1_000, 8_000].map((size) => unitsOf(template, jobOf(valueNamed(of, size))));
        expect(large).toBeLessThanOrEqual(8 * 1.5 * (small ?? 0) + 500);
      }),
      { numRuns: runs(200) },
    );
  });

  it('takes about as long for each unit', () => {
    const most = workLimits.run / 20;
    /** About twenty times as long as it is on a usual machine. */
    const nsPerUnit = 250;
    fc.assert(
      fc.property(anyWork, value, fc.constantFrom(10, 1_000, 20_000), (template, of, size) => {
        const job = jobOf(valueNamed(of, size));
        const meter = new Meter(most);
        const spentMs = countProcessorMs();
        work(repeated(template), job, meter);
        expect(spentMs()).toBeLessThan(40 + (meter.spent * nsPerUnit) / 1e6);
      }),
      { numRuns: runs(60) },
    );
  });
});

describe('a meter', () => {
  const template = compileTemplate({ a: '{{ job.v | basename }}' }, '/steps/3/input');

  it('refuses the work with its own size and the place', () => {
    expect(() => work(template, jobOf('x'), new Meter(1_000))).not.toThrow();
    const evaluate = () => evaluateTemplate(template, aJob({ v: 'x'.repeat(10_000) }), new Meter(1_000));
    expect(evaluate).toThrow(
      expect.objectContaining({
        message: 'the expressions take more than 1000 units of work',
        pointer: '/steps/3/input/a',
        isTooLarge: true,
      }),
    );
  });

  it('is shared by all evaluations that draw on it', () => {
    const once = unitsOf(template, jobOf('x'.repeat(100)));
    const meter = new Meter(3 * once);
    const ends = [1, 2, 3, 4].map(() => work(template, jobOf('x'.repeat(100)), meter).isRefused);
    expect(ends).toEqual([false, false, false, true]);
  });

  it('gives parts of itself, which take no more than they are given', () => {
    const all = new Meter(1_000);
    const own = all.part(600);
    expect([own.most, all.left]).toEqual([600, 1_000]);
    own.left = -50;
    all.count(own);
    expect(all.left).toBe(400);
    const rest = all.part(600);
    expect([rest.left, rest.most]).toEqual([400, 1_000]);
    rest.left = 0;
    all.count(rest);
    expect([all.left, all.part(600).left]).toEqual([0, 0]);
  });
});

const list = Array.from({ length: 150_000 }, (_, at) => at);
const job: JsonObject = {
  text: 'x'.repeat(500_000),
  list,
  twin: [...list],
  json: JSON.stringify(list),
  objects: list.slice(0, 20_000).map((at) => ({ at, of: [at] })),
};

/** Many times the limit, by what was not charged, or not by its growth. */
it.each([
  ['a text that is read again and again', `job.text${' | basename'.repeat(2_000)} | length`],
  ['lists that differ in one item', `${'job.list == (job.twin | reverse) || '.repeat(50)}false`],
  ['numbers that are sorted', `job.list${' | sort | reverse'.repeat(20)} | length`],
  ['texts that are read as JSON', `${'(job.json | parse_json | length) == 0 || '.repeat(50)}true`],
  ['objects that are searched', `${'{"at": 0} in job.objects || '.repeat(50)}true`],
  ['parts that are many', `${'job.objects[*].of[0] == 0 || '.repeat(50)}true`],
  ['an error that names keys', `${'(job.none ?? (job.text | lower)) == 1 || '.repeat(50)}true`],
])('an expression with %s is stopped', (_, text) => {
  const { isRefused } = work(compileTemplate(`{{ (${text}) }}`), job, new Meter(workLimits.run));
  expect(isRefused).toBe(true);
});
