import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { typeOfValue, unionOf } from '../../src/schema-types/combine-types.ts';
import { leastBytes, mostBytes } from '../../src/schema-types/json-size.ts';
import { typeOfSchema } from '../../src/schema-types/schema-type.ts';

const closed = { type: 'object', additionalProperties: false };

describe('the size of the values of a type', () => {
  it.each<[JsonObject, number, number]>([
    [{}, 1, Number.POSITIVE_INFINITY],
    [{ type: 'string', minLength: 5, maxLength: 10 }, 7, 62],
    [
      {
        allOf: [
          { type: 'string', minLength: 5 },
          { minLength: 9, maxLength: 10 },
        ],
      },
      11,
      62,
    ],
    [{ anyOf: [{ type: 'string', minLength: 5 }, { type: 'boolean' }] }, 4, Number.POSITIVE_INFINITY],
    [{ type: 'array', items: { type: 'number' }, minItems: 3, maxItems: 4 }, 7, 105],
    [{ ...closed, properties: { a: { const: 'xy' }, b: { type: 'null' } }, required: ['a'] }, 10, 19],
    [{ type: 'object', required: ['a'], properties: { a: { const: true } } }, 10, Number.POSITIVE_INFINITY],
    [
      { $ref: '#/$defs/n', $defs: { n: { type: 'object', properties: { n: { $ref: '#/$defs/n' } } } } },
      2,
      Number.POSITIVE_INFINITY,
    ],
  ])('of %j is bounded', (schema, least, most) => {
    const type = typeOfSchema(schema);
    expect([leastBytes(type), mostBytes(type)]).toEqual([least, most]);
  });

  it('is within the bounds of its own type, and of one that has other values, too', () => {
    const values = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;
    fc.assert(
      fc.property(values, values, (value, other) => {
        const bytes = Buffer.byteLength(JSON.stringify(value));
        for (const type of [typeOfValue(value), unionOf([typeOfValue(value), typeOfValue(other)])]) {
          expect(leastBytes(type)).toBeLessThanOrEqual(bytes);
        }
      }),
    );
  });
});
