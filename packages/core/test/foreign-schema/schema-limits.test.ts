import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import { findSchemaFault } from '../../src/foreign-schema.ts';

function nest(levels: number): JsonObject {
  return levels === 1 ? {} : { not: nest(levels - 1) };
}
function strings(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `value-${at}`);
}
function twoWays(keyword: string): JsonObject {
  return {
    $defs: {
      node: {
        [keyword]: [
          { properties: { a: { $ref: '#/$defs/node' } } },
          { properties: { a: { $ref: '#/$defs/node' } } },
        ],
      },
    },
    $ref: '#/$defs/node',
  };
}

/** Each of `levels` definitions goes to the next one. */
function chain(levels: number, step: (next: JsonObject) => JsonObject): JsonObject {
  const names = Array.from({ length: levels }, (_, at) => `d${at}`);
  const defs = names.map((name, at) => [name, at < levels - 1 ? step({ $ref: `#/$defs/d${at + 1}` }) : {}]);
  return { $ref: '#/$defs/d0', $defs: Object.fromEntries(defs) };
}

describe('findSchemaFault', () => {
  it.each<[string, JsonObject, RegExp | null]>([
    ['32 levels', nest(32), null],
    ['33 levels', nest(33), /deeper than 32/],
    ['an enum of 5,000', { enum: strings(5_000) }, null],
    [
      'an enum of 5,001',
      { properties: { a: { enum: strings(5_001) } } },
      /5001 values, at most 5000.* \/properties\/a$/,
    ],
    ['2,001 values', { examples: strings(1_999) }, /2000/],
    ['a remote reference', { $ref: 'https://example.org/schema' }, /leaves the document/],
    ['a reference to a file', { items: { $ref: 'other.json' } }, /leaves the document.* \/items$/],
    ['a local reference', { $defs: { a: {} }, items: { $ref: '#/$defs/a' } }, null],
    ['a field named $ref', { properties: { $ref: { type: 'string' }, enum: { type: 'string' } } }, null],
    ['an embedded document', { $defs: { a: { $id: 'https://example.org/a' } } }, null],
    ['an asynchronous schema', { $async: true }, /\$async/],
    ['uniqueItems without a bound', { type: 'array', uniqueItems: true }, null],
    ['uniqueItems with a bound', { type: 'array', uniqueItems: true, maxItems: 100 }, null],
    ['anyOf that leads back to itself twice', twoWays('anyOf'), null],
    ['oneOf that leads back to itself twice', twoWays('oneOf'), null],
    ['allOf that leads back to itself twice', twoWays('allOf'), null],
    ['references that double without a loop', chain(20, (next) => ({ anyOf: [next, next] })), null],
    ['references that double by if', chain(20, (next) => ({ if: next, else: next })), null],
    ['a long chain of references', chain(900, (next) => next), null],
    ['a reference to itself', { $ref: '#' }, /leads back to itself/],
    [
      'a loop in place',
      { $defs: { a: { not: { $ref: '#' } } }, allOf: [{ $ref: '#/$defs/a' }] },
      /leads back/,
    ],
    ['a tree', { properties: { children: { items: { $ref: '#' } } } }, null],
    ['patterns of 50,000 instructions', { pattern: 'a{1000}'.repeat(49) }, null],
    ['patterns of more', { patternProperties: { ['a{1000}'.repeat(51)]: {} } }, /50000 instructions/],
    ['a linked list', { properties: { next: { anyOf: [{ type: 'null' }, { $ref: '#' }] } } }, null],
  ])('%s', (_, schema, fault) => {
    const found = findSchemaFault(schema);
    if (fault === null) expect(found).toBeNull();
    else expect(found).toMatch(fault);
  });

  it('judges the worst it may be given in less than 500 ms', () => {
    const anchors = Array.from({ length: 330 }, (_, at) => ({
      $anchor: `a${at}`,
      items: { $ref: `#a${at + 1}` },
    }));
    const crossed = { anyOf: [...anchors, { $anchor: 'a330', items: { $ref: '#' } }] };
    const spentMs = countProcessorMs();
    expect(findSchemaFault(crossed)).toBeNull();
    findSchemaFault(chain(300, (next) => ({ anyOf: [next, next] })));
    expect(spentMs()).toBeLessThan(500);
  });

  it('accepts the schema of any JSON', () => {
    expect(findSchemaFault(z.toJSONSchema(z.object({ any: z.json() })) as JsonObject)).toBeNull();
  });
});
