import { stringify } from 'yaml';
import type { StoredVersion } from '../../api/pipelines.ts';

/** A version as it was written; where that is not kept, the same as YAML. */
export function sourceOf({ source, definition }: StoredVersion): string {
  return source?.content_type.includes('yaml') === true
    ? source.text
    : stringify(definition, { lineWidth: 100 });
}
