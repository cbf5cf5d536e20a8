import type { JsonObject } from '../../contracts/primitives.ts';

/** Whether a schema is to be read as draft 07; any other is read as 2020-12. */
export function isDraft7({ $schema }: JsonObject): boolean {
  return typeof $schema === 'string' && /^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/.test($schema);
}
