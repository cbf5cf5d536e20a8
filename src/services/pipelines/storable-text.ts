import type { PipelineDefinition } from '../../contracts/pipeline.ts';

/** NUL, and halves of surrogate pairs: YAML and JSON escapes can write them, Postgres cannot hold them. */
const unstorable = /[\0\p{Surrogate}]/u;

export const hasUnstorableText = (definition: PipelineDefinition): boolean => {
  let found = false;
  JSON.stringify(definition, (key, value: unknown) => {
    found ||= unstorable.test(key) || (typeof value === 'string' && unstorable.test(value));
    return value;
  });
  return found;
};
