/** Filters of lists, texts, numbers and moments against JavaScript's own functions, and their bounds. */
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import type { Json } from '../../src/contracts/primitives.ts';
import { ExpressionError, ExpressionSyntaxError } from '../../src/expression/language.ts';
import { workLimits } from '../../src/expression/meter.ts';
import { compileTemplate, referencedSteps } from '../../src/expression/template.ts';
import { canonicalJson, isForbiddenName } from '../../src/json/values.ts';
import { aJob, evaluateIn } from './a-scope.ts';

function give(expression: string, job: Record<string, Json>): Json {
  return evaluateIn(`{{ ${expression} }}`, aJob(job));
}

function failureOf(expression: string, job: Record<string, Json> = {}): string {
  try {
    give(expression, job);
  } catch (error) {
    if (error instanceof ExpressionError || error instanceof ExpressionSyntaxError) return error.message;
    throw error;
  }
  throw new Error('it gave a value');
}

const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;
const numbers = fc.array(fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true })));
const texts = fc.array(fc.string());
const items = fc.array(fc.record({ k: fc.integer({ min: 0, max: 5 }), name: fc.string() }));

describe('filters of lists', () => {
  it('select by every comparison as JavaScript does', () => {
    fc.assert(
      fc.property(items, fc.integer({ min: 0, max: 5 }), (list, k) => {
        const ask = (operator: string) => give(`job.list | where("k" ${operator} job.k)`, { list, k });
        expect(ask('==')).toEqual(list.filter((item) => item.k === k));
        expect(ask('!=')).toEqual(list.filter((item) => item.k !== k));
        expect(ask('<')).toEqual(list.filter((item) => item.k < k));
        expect(ask('>=')).toEqual(list.filter((item) => item.k >= k));
        expect(give('job.list | where("k" in job.some)', { list, some: [k, 9] })).toEqual(ask('=='));
      }),
    );
  });

  it('map, add, cut, turn round and flatten', () => {
    fc.assert(
      fc.property(
        items,
        fc.array(json),
        fc.integer({ min: -9, max: 9 }),
        fc.integer({ min: -9, max: 9 }),
        (a, b, from, to) => {
          const job = { a, b, from, to };
          expect(give('job.a | map("name")', job)).toEqual(a.map(({ name }) => name));
          expect(give('job.a | concat(job.b)', job)).toEqual([...a, ...b]);
          expect(give('job.b | slice(job.from, job.to)', job)).toEqual(b.slice(from, to));
          expect(give('job.b | reverse', job)).toEqual(b.toReversed());
          expect(give('job.b | flatten', job)).toEqual(b.flat());
        },
      ),
    );
  });

  it('take an item or a member by a value, as the brackets of a path do', () => {
    fc.assert(
      fc.property(
        fc.array(json),
        fc.nat({ max: 9 }),
        fc.dictionary(fc.string(), json),
        (list, place, map) => {
          const keys = Object.keys(map).filter((key) => !isForbiddenName(key));
          const job = { list, place, map, keys, deep: { list: [{ list }] } };
          expect(give('job.list | at(job.place) ?? "none"', job)).toEqual(list[place] ?? 'none');
          expect(give('job.list[job.place] ?? "none"', job)).toEqual(list[place] ?? 'none');
          expect(give('job.list[job.place + 1] ?? "none"', job)).toEqual(list[place + 1] ?? 'none');
          expect(give('job.deep.list[(0)].list[job.place] ?? "none"', job)).toEqual(list[place] ?? 'none');
          for (const [index, key] of keys.entries())
            expect(give(`job.map[job.keys[${index}]] ?? "none"`, job)).toEqual(map[key] ?? 'none');
        },
      ),
    );
    expect(give('job.rows[*].name | at(job.n)', { rows: [{ name: 'a' }, { name: 'b' }], n: 1 })).toBe('b');
    expect(give('job.rows[job.n].name.first', { rows: [{ name: { first: 'a' } }], n: 0 })).toBe('a');
  });

  it.each([
    ['job.list[job.place]', { list: [1], place: -1 }, 'the place in a list is 0, 1, 2, ..., not'],
    ['job.list[job.place]', { list: [1], place: 0.5 }, 'the place in a list is 0, 1, 2, ..., not'],
    ['job.list[job.place]', { list: [1], place: 'a' }, 'the place in a list is 0, 1, 2, ..., not'],
    ['job.list[job.place]', { list: [1], place: 1 }, 'there is no item 1, the list has 1'],
    ['job.map[job.place]', { map: { a: 1 }, place: 'b' }, 'the object has no key "b"'],
    ['job.map[job.place]', { map: { a: 1 }, place: 'toString' }, 'the object has no key "toString"'],
    ['job.map[job.place]', { map: { a: 1 }, place: 0 }, 'the key of an object is a string, not'],
    ['job.map[job.place].c', { map: { a: null }, place: 'a' }, 'null has nothing at'],
    ['job.text[job.place]', { text: 'abc', place: 0 }, 'a place is of a list or an object'],
    ['job.list[job.place][*].a', { list: [], place: 0 }, '[*] cannot follow a bracket with an expression'],
    ['job.list["__proto__"]', { list: [] }, 'the name __proto__ is not allowed'],
    ['job.count | range', { count: -1 }, 'range takes a whole number from 0 on'],
    ['job.count | range', { count: 1.5 }, 'range takes a whole number from 0 on'],
    ['job.count | range("a")', { count: 1 }, 'range starts at a whole number, not at'],
    ['job.count | range', { count: 1_000_000_000 }, 'the expressions take more than'],
    ['job | combinations', { a: 1 }, 'combinations takes an object of lists; "a" is'],
  ])('refuse %s of %j', (expression, job, message) => {
    expect(failureOf(expression, job)).toContain(message);
  });

  it('count, and combine lists as loops do', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 20 }),
        fc.integer({ min: -5, max: 5 }),
        numbers,
        texts,
        (count, start, a, b) => {
          const [few, some] = [a.slice(0, 5), b.slice(0, 5)];
          expect(give('job.count | range', { count })).toEqual([...Array(count).keys()]);
          expect(give('job.count | range(job.start)', { count, start })).toEqual(
            [...Array(count).keys()].map((at) => at + start),
          );
          const pairs = few.flatMap((x) => some.flatMap((y) => [1, 2].map((z) => ({ x, y, z }))));
          expect(give('{"x": job.few, "y": job.some, "z": [1, 2]} | combinations', { few, some })).toEqual(
            pairs,
          );
        },
      ),
    );
  });

  it('sort without a change of the items, and keep the order of equal ones', () => {
    fc.assert(
      fc.property(numbers, texts, items, (list, words, objects) => {
        expect(give('job.list | sort', { list })).toEqual(list.toSorted((x, y) => x - y));
        expect(give('job.words | sort', { words })).toEqual(
          words.toSorted((x, y) => (x < y ? -1 : x > y ? 1 : 0)),
        );
        expect(give('job.objects | sort_by("k")', { objects })).toEqual(
          objects.toSorted((x, y) => x.k - y.k),
        );
      }),
    );
  });

  it('find each value once, whatever the order of its keys', () => {
    fc.assert(
      fc.property(fc.array(json), (list) => {
        const unique = give('job.list | concat(job.list) | unique', { list }) as Json[];
        const known = new Set(list.map(canonicalJson));
        expect(unique.map(canonicalJson)).toEqual([...known]);
      }),
    );
    expect(
      give('job.list | unique', {
        list: [
          { a: 1, b: 2 },
          { b: 2, a: 1 },
        ],
      }),
    ).toEqual([{ a: 1, b: 2 }]);
  });

  it('add up, and find the least and the greatest', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -1e6, max: 1e6 }), { minLength: 1 }), (list) => {
        expect(give('job.list | sum', { list })).toBe(list.reduce((sum, n) => sum + n, 0));
        expect(give('job.list | min', { list })).toBe(Math.min(...list));
        expect(give('job.list | max', { list })).toBe(Math.max(...list));
      }),
    );
    expect(give('(job.list | min) ?? 0', { list: [] })).toBe(0);
    expect(give('job.list | sum', { list: [] })).toBe(0);
  });

  test.each([
    ['job.l | map("a")', { l: [{ a: 1 }, null] }, [1, null]],
    ['(job.l | map("a")) ?? "none"', { l: [{ a: 1 }, {}] }, 'none'],
    ['job.l | where("a" == null)', { l: [{ a: 1 }, {}, null] }, [{}, null]],
    ['job.l | where("a" < 2)', { l: [{ a: 1 }, {}, null, { a: null }] }, [{ a: 1 }]],
    ['job.o | keys', { o: { b: 1, a: 2 } }, ['b', 'a']],
    ['job.o | values', { o: { b: 1, a: [2] } }, [1, [2]]],
  ] as const)('%s of %j', (expression, job, value) => {
    expect(give(expression, job as unknown as Record<string, Json>)).toEqual(value);
  });

  test.each([
    ['job.l | map("a")', { l: [1] }, 'map takes a list of objects; item 0 is a number'],
    ['job.l | map("a")', { l: [{}] }, 'item 0 has no field "a"'],
    [
      'job.l | sort',
      { l: [1, 'a'] },
      'sort takes a list of numbers or a list of strings; item 1 is a string',
    ],
    ['job.l | sort_by("k")', { l: [{ k: 1 }, {}] }, 'is a number in all, or a string in all; item 1 is null'],
    ['job.l | sum', { l: [1, null] }, 'sum takes a list of numbers; item 1 is null'],
    ['job.l | sum', { l: [1e308, 1e308] }, 'the sum is too large for a number'],
    ['job.l | concat(1)', { l: [] }, 'concat adds a list, not a number'],
    ['job.l | slice(0, 0.5)', { l: [] }, 'slice takes two whole numbers, not a number'],
    ['job.l | keys', { l: [] }, 'keys takes an object, not a list of 0'],
    ['job.l | map("__proto__")', { l: [] }, 'the name __proto__ is not allowed'],
    ['job.l | map(1)', { l: [] }, 'expected a field: map("name"), found "1"'],
    ['job.l | where("a")', { l: [] }, 'expected a comparison: where("state" == "done"), found ")"'],
    ['job.l | slice(1)', { l: [] }, 'expected , and another argument: slice(value, value), found ")"'],
    ['job.l | concat', { l: [] }, 'expected an argument: concat(value), found "}}"'],
  ] as const)('%s of %j fails: %s', (expression, job, message) => {
    expect(failureOf(expression, job as unknown as Record<string, Json>)).toContain(message);
  });
});

describe('filters of texts and numbers', () => {
  it('split, replace and join back', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', ',', '😀') });
    fc.assert(
      fc.property(
        text,
        text.filter((part) => part !== ''),
        text,
        (all, part, other) => {
          const job = { all, part, other };
          expect(give('job.all | split(job.part)', job)).toEqual(all.split(part));
          expect(give('job.all | replace(job.part, job.other)', job)).toBe(all.split(part).join(other));
        },
      ),
    );
  });

  it('cut a text without halves of characters', () => {
    const text = fc.string({ unit: 'grapheme-composite' });
    fc.assert(
      fc.property(text, fc.integer({ min: -9, max: 9 }), fc.integer({ min: -9, max: 9 }), (all, from, to) => {
        const cut = give('job.all | slice(job.from, job.to)', { all, from, to }) as string;
        expect(cut).not.toMatch(/\p{Cs}/u);
        expect(all).toContain(cut);
      }),
    );
  });

  it('round as decimals are written', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e9, max: 1e9 }), fc.integer({ min: 0, max: 4 }), (n, digits) => {
        const value = n / 1_000;
        const rounded = give('job.value | round(job.digits)', { value, digits }) as number;
        expect(Math.abs(rounded - value)).toBeLessThanOrEqual(0.5 * 10 ** -digits + 1e-9);
        expect(Number(rounded.toFixed(digits))).toBe(rounded);
      }),
    );
    expect(give('1.005 | round(2)', {})).toBe(1.01);
    expect(give('-2.5 | round', {})).toBe(-3);
    expect(give('1e-9 | round(2)', {})).toBe(0);
    expect(give('1e300 | round(2)', {})).toBe(1e300);
  });

  it('read any JSON text', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(give('job.text | parse_json', { text: JSON.stringify(value) })).toEqual(
          JSON.parse(JSON.stringify(value)),
        );
      }),
    );
  });

  test.each([
    ['job.t | split("")', 'split searches for a text that is not empty'],
    ['job.t | split(1)', 'split takes a string as separator, not a number'],
    ['job.t | parse_json', 'parse_json takes the text of a JSON value'],
    ['job.t | round', 'round takes a number, not a string'],
    ['1 | round(16)', 'round takes 0 to 15 digits, not a number'],
    ['job.t | add_duration("x")', 'add_duration takes a moment such as'],
    ['"2026-01-01" | add_duration("1y")', 'add_duration takes a duration such as "1d" or "-30m"'],
    ['"2026-02-30" | timestamp', 'timestamp takes a moment such as'],
    ['1e17 | timestamp', 'the moment is not in the years 0001 to 9999'],
  ])('%s fails: %s', (expression, message) => {
    expect(failureOf(expression, { t: 'text' })).toContain(message);
  });
});

describe('filters of moments', () => {
  const moment = fc.date({
    min: new Date('1970-01-01T00:00:00Z'),
    max: new Date('2999-12-31T00:00:00Z'),
    noInvalidDate: true,
  });

  it('read and write what JavaScript does, in any zone', () => {
    fc.assert(
      fc.property(moment, fc.integer({ min: -14 * 60, max: 14 * 60 }), (date, minutes) => {
        const at = date.toISOString();
        expect(give('job.at | timestamp', { at })).toBe(date.getTime());
        expect(give('job.at | format_date("YYYY-MM-DDTHH:mm:ss.SSSZ")', { at: date.getTime() })).toBe(at);
        const local = new Date(date.getTime() + minutes * 60_000).toISOString().slice(0, -1);
        const size = Math.abs(minutes);
        const zone = `${minutes < 0 ? '-' : '+'}${String(Math.floor(size / 60)).padStart(2, '0')}:${String(size % 60).padStart(2, '0')}`;
        expect(give('job.at | timestamp', { at: `${local}${zone}` })).toBe(date.getTime());
      }),
    );
  });

  it('go forth and back by a duration', () => {
    fc.assert(
      fc.property(
        moment,
        fc.integer({ min: 0, max: 10_000 }),
        fc.constantFrom('ms', 's', 'm', 'h'),
        (date, n, unit) => {
          const job = { at: date.toISOString(), by: `${n}${unit}`, back: `-${n}${unit}` };
          expect(give('job.at | add_duration(job.by) | add_duration(job.back)', job)).toBe(job.at);
        },
      ),
    );
  });
});

describe('their work', () => {
  const big = 'a'.repeat(100_000);

  test.each([
    ['a replacement that grows', 'job.big | replace("a", job.big)'],
    ['a search that compares again and again', 'job.big | split(job.half)'],
    ['repeated lists', `job.list${' | concat(job.list)'.repeat(30)}`],
  ])('is bounded: %s', (_, expression) => {
    const job = { big, half: `${'a'.repeat(49_999)}b`, list: Array.from({ length: 100_000 }, () => 1) };
    expect(failureOf(expression, job)).toContain(`more than ${workLimits.run} units of work`);
  });

  it('is bounded by the depth of arguments', () => {
    const deep = `${'job.a | concat('.repeat(100)}job.a${')'.repeat(100)}`;
    expect(failureOf(deep)).toContain('nests deeper than');
  });
});

test('the argument of a filter is a reference like any other', () => {
  const template = compileTemplate('{{ job.a | concat(steps.b.output) | where("x" in steps.c.output) }}');
  expect(referencedSteps(template)).toEqual(['b', 'c']);
});
