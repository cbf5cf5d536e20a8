import type { JsonObject } from '../../../src/contracts/primitives.ts';

/** Inside all limits, and takes ajv most of a second and 50 MB: the branches of each name are merged. */
export function aHeavySchema(): JsonObject {
  const names = Array.from({ length: 600 }, (_, at) => [`name${at}`, {}]);
  return {
    $defs: { wide: { properties: Object.fromEntries(names) } },
    anyOf: Array.from({ length: 600 }, () => ({ $ref: '#/$defs/wide' })),
    unevaluatedProperties: false,
  };
}
