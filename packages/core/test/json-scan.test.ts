import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countProcessorMs } from '../../../test/support/processor-time.ts';
import { findJsonFault, type JsonLimits } from '../src/json/scan.ts';

const limits: JsonLimits = { depth: 4, keys: 3, values: 100, stringBytes: 10 };
function scan(text: string, over: Partial<JsonLimits> = {}) {
  return findJsonFault(Buffer.from(text), { ...limits, ...over });
}

const wide = { depth: 1_000, keys: 100_000, values: 2_000_000, stringBytes: 100_000 };

describe('a JSON text', () => {
  test.each([
    ['[[[[1]]]]', '[[[[[1]]]]]'],
    ['{"a":{"b":{"c":[]}}}', '{"a":{"b":{"c":[[]]}}}'],
    ['[[],[],[],[],[]]', '[[],[[[[]]]]]'],
    ['["[[[[[["]', '["[",[[[[]]]]]'],
  ])('may be %s, but not nest like %s', (allowed, refused) => {
    expect(scan(allowed)).toBeNull();
    expect(scan(refused)).toMatchObject({ code: 'json_too_deep' });
  });

  test.each([
    ['{"a":1,"b":2,"c":3}', '{"a":1,"b":2,"c":3,"d":4}'],
    ['["a","b","c","d"]', '[{"a":1},{"a":1},{"a" \n:1},{"a":1}]'],
  ])('may be %s, but not have the keys of %s', (allowed, refused) => {
    expect(scan(allowed)).toBeNull();
    expect(scan(refused)).toMatchObject({ code: 'json_too_deep' });
  });

  test.each([
    ['[1,2,3]', '[1,2,3,4]'],
    ['[[],[ ],{}]', '[[],[],{ },[]]'],
    ['{"a":{"b":{"c":1}}}', '{"a":{"b":{"c":[1]}}}'],
    ['["a,b,c,d",[","]]', '["a",["b","c"]]'],
  ])('may be %s, but not hold the values of %s', (allowed, refused) => {
    expect(scan(allowed, { values: 4 })).toBeNull();
    expect(scan(refused, { values: 4 })).toMatchObject({ code: 'json_too_deep' });
  });

  test('may hold strings up to the limit', () => {
    expect(scan('["1234567890"]')).toBeNull();
    expect(scan('["12345678901"]')).toMatchObject({ code: 'json_too_deep' });
  });

  test.each([
    '{"__proto__":1}',
    '{"a":{"constructor" :1}}',
    '[{"prototype":1}]',
    '{"\\u005f_proto__":1}',
    '{"\\u005F\\u005fproto\\u005f_":1}',
  ])('may not hold the key of %s', (text) => {
    expect(scan(text, wide)).toMatchObject({ code: 'proto_key' });
  });

  test('may hold these names as values', () => {
    expect(scan('["__proto__","constructor"]', wide)).toBeNull();
  });

  test.each([
    '"\\u0000"',
    '{"a\\u0000":1}',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\ud83dx\\ude00"',
    '"\\uD800\\\\uDC00"',
  ])('may not hold NUL or half a pair: %s', (text) => {
    expect(scan(text, wide)).toMatchObject({ code: 'malformed_json' });
  });

  test.each(['"\\ud83d\\ude00"', '"\\\\u0000"', '"\\\\ud800"', '"\\\\\\"__proto__"'])(
    'may hold %s',
    (text) => {
      expect(scan(text, wide)).toBeNull();
    },
  );

  test('may hold any text where text is not checked, and is counted anyway', () => {
    const text = '{"__proto__":"\\u0000\\ud800\\"","a":["\\\\",1]}';
    expect(scan(text, { ...wide, values: 5, keys: 2, anyText: true })).toBeNull();
    expect(scan(text, { ...wide, values: 4, anyText: true })).toMatchObject({ code: 'json_too_deep' });
    expect(scan(text, { ...wide, keys: 1, anyText: true })).toMatchObject({ code: 'json_too_deep' });
  });

  test('without anything forbidden passes, whatever it holds', () => {
    const value = fc.json({ maxDepth: 6, stringUnit: 'binary' });
    fc.assert(
      fc.property(value, (text) => {
        const isForbidden = /\\u0000|__proto__|prototype|constructor/.test(text);
        if (!isForbidden) expect(scan(text, wide)).toBeNull();
      }),
    );
  });

  test('counts every key, value and level exactly', () => {
    const measure = (value: unknown): { depth: number; keys: number; values: number } => {
      if (typeof value !== 'object' || value === null) return { depth: 0, keys: 0, values: 1 };
      const below = Object.values(value).map(measure);
      return {
        values: below.reduce((sum, { values }) => sum + values, 1),
        depth: 1 + Math.max(0, ...below.map(({ depth }) => depth)),
        keys: below.reduce(
          (sum, { keys }) => sum + keys,
          Array.isArray(value) ? 0 : Object.keys(value).length,
        ),
      };
    };
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const text = JSON.stringify(value);
        fc.pre(!/__proto__|prototype|constructor|\\u0000/.test(text));
        const { depth, keys, values } = measure(value);
        expect(scan(text, { ...wide, depth, keys, values })).toBeNull();
        if (values > 1) expect(scan(text, { ...wide, values: values - 1 })).not.toBeNull();
        if (depth > 0) expect(scan(text, { ...wide, depth: depth - 1 })).not.toBeNull();
        if (keys > 0) expect(scan(text, { ...wide, keys: keys - 1 })).not.toBeNull();
      }),
    );
  });

  test.each(['"', '"\\', '"\\u', '{"a', '[', '}', '"\\u12', '{"\\x":1}'])(
    'that is cut off ends the scan: %s',
    (text) => {
      expect(['malformed_json', undefined]).toContain(scan(text)?.code);
    },
  );

  test('of the largest size is scanned in well under a second', () => {
    const text = Buffer.from(`["${'\\u0041'.repeat(40_000)}"${',"\\\\"'.repeat(1_000_000)}]`);
    const spentMs = countProcessorMs();
    expect(findJsonFault(text, { ...wide, stringBytes: 1_000_000 })).toBeNull();
    expect(spentMs()).toBeLessThan(1_000);
  });
});
