/** Texts that a parameter may not be, one for each rule of its schema. */
import type { JsonSchema } from './document.ts';

export function listViolations(schema: JsonSchema): string[] {
  const { type, maxLength, minimum, maximum, pattern, format } = schema as Record<string, unknown>;
  const found: string[] = [];
  if (schema.enum !== undefined || schema.const !== undefined) found.push('none of them');
  if (typeof maxLength === 'number') found.push('m'.repeat(maxLength + 1));
  if (typeof pattern === 'string' || format !== undefined) found.push('\u{1F600} ');
  if (type === 'integer' || type === 'number') found.push('many');
  if (typeof minimum === 'number') found.push(String(minimum - 1));
  if (typeof maximum === 'number' && maximum < Number.MAX_SAFE_INTEGER) found.push(String(maximum + 1));
  return found;
}
