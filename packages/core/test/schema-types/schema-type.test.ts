import { expect, it } from 'vitest';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import { typeOfSchema } from '../../src/schema-types/schema-type.ts';

it.each([
  ['https://json-schema.org/draft/2020-12/schema', 'never', 1],
  ['http://json-schema.org/draft-07/schema#', 'maybe', 0],
])('by %s, keywords that are unknown to that draft have no effect', ($schema, presence, positions) => {
  const { object, list } = typeOfSchema({
    $schema,
    properties: { a: {}, b: { prefixItems: [{ type: 'string' }], items: false } },
    unevaluatedProperties: false,
    prefixItems: [{ type: 'string' }],
    minItems: 0,
  });
  expect([object.other().presence, list.positions]).toEqual([presence, positions]);
});

it.each(['list', 'object'] as const)(
  'a path into a union that leads back to itself is read once per level: %s',
  (kind) => {
    const next = () => ({ anyOf: [{ $ref: '#/$defs/one' }, { $ref: '#/$defs/other' }] });
    const node = () => ({ type: ['array', 'object'], prefixItems: [next()], properties: { a: next() } });
    const both = () => ({ anyOf: [node(), node()] });
    let type = typeOfSchema({ $ref: '#/$defs/one', $defs: { one: both(), other: both() } });
    const spentMs = countProcessorMs();
    for (let level = 0; level < 60; level++) {
      type = kind === 'list' ? type.list.item(0) : type.object.property('a').type;
    }
    expect(type.kinds).not.toBe(0);
    expect(spentMs()).toBeLessThan(5_000);
  },
);
