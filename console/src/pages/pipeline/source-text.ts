import { stringify } from 'yaml';
import type { PipelineVersion } from '../../../../src/contracts/pipeline.ts';

/** A version as it was written; where that is not kept, the same as YAML. */
export function sourceOf({ source, definition }: PipelineVersion): string {
  return source?.content_type.includes('yaml') === true
    ? source.text
    : stringify(definition, { lineWidth: 100 });
}
