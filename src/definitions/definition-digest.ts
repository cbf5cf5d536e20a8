import { createHash } from 'node:crypto';
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Json } from '../contracts/primitives.ts';
import { canonicalJson } from '../core/canonical-json.ts';

/** SHA-256 in hex; the order of keys does not matter. */
export function digestDefinition(definition: PipelineDefinition): string {
  return createHash('sha256')
    .update(canonicalJson(definition as unknown as Json))
    .digest('hex');
}
