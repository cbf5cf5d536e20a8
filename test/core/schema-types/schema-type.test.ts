import { expect, it } from 'vitest';
import { typeOfSchema } from '../../../src/core/schema-types/schema-type.ts';

it.each([
  ['https://json-schema.org/draft/2020-12/schema', 'never', 1],
  ['http://json-schema.org/draft-07/schema#', 'maybe', 0],
])('by %s, what that draft does not know says nothing', ($schema, presence, positions) => {
  const { object, list } = typeOfSchema({
    $schema,
    properties: { a: {}, b: { prefixItems: [{ type: 'string' }], items: false } },
    unevaluatedProperties: false,
    prefixItems: [{ type: 'string' }],
    minItems: 0,
  });
  expect([object.other().presence, list.positions]).toEqual([presence, positions]);
});
