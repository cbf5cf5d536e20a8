import { createHash } from 'node:crypto';
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { Json } from '../../contracts/primitives.ts';
import { isList } from '../../core/json-type.ts';

/** JSON without spaces and with sorted keys: the same text for equal values. */
const toCanonicalJson = (value: Json): string => {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (isList(value)) return `[${value.map(toCanonicalJson).join(',')}]`;
  const entries = Object.entries(value).filter(([, field]) => field !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, field]) => `${JSON.stringify(key)}:${toCanonicalJson(field)}`).join(',')}}`;
};

/** SHA-256 in hex; the order of keys does not matter. */
export const digestDefinition = (definition: PipelineDefinition): string =>
  createHash('sha256')
    .update(toCanonicalJson(definition as unknown as Json))
    .digest('hex');
