import type { PipelineVersion } from '@capstan/core/contracts/pipeline-answers';
import { stringify } from 'yaml';

/** The source text of a version; where it is not stored, the definition as YAML. */
export function sourceOf({ source, definition }: PipelineVersion): string {
  return source?.content_type.includes('yaml') === true
    ? source.text
    : stringify(definition, { lineWidth: 100 });
}
