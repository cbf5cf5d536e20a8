import type { JsonObject } from '@capstan/core/contracts/primitives';

/**
 * Inside all limits, and takes ajv most of a second and 50 MB: the branches of each name are merged.
 *
 * @param size of each: half of it takes a quarter
 */
export function aHeavySchema(size = 600): JsonObject {
  const names = Array.from({ length: size }, (_, at) => [`name${at}`, {}]);
  return {
    $defs: { wide: { properties: Object.fromEntries(names) } },
    anyOf: Array.from({ length: size }, () => ({ $ref: '#/$defs/wide' })),
    unevaluatedProperties: false,
  };
}
