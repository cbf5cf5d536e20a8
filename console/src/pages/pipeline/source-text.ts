import { stringify } from 'yaml';
import type { PipelineVersion } from '../../../../src/contracts/pipeline-answers.ts';

/** The source text of a version; where it is not stored, the definition as YAML. */
export function sourceOf({ source, definition }: PipelineVersion): string {
  return source?.content_type.includes('yaml') === true
    ? source.text
    : stringify(definition, { lineWidth: 100 });
}
