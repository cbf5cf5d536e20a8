/**
 * Object keys anywhere in a definition, before its shape is known: names that reach a prototype are
 * refused, and keys that look like templates are pointed out, because keys never are.
 */
import type { Json } from '../../../contracts/primitives.ts';
import { isForbiddenName } from '../../forbidden-names.ts';
import { extendPointer } from '../../json-pointer.ts';
import { isList, isPlainObject } from '../../json-type.ts';
import type { DefinitionFinding } from './finding.ts';

export function checkKeys(value: Json, pointer = ''): DefinitionFinding[] {
  const findings: DefinitionFinding[] = [];
  collect(value, pointer, findings);
  return findings;
}

function collect(value: Json, pointer: string, findings: DefinitionFinding[]): void {
  if (isList(value)) {
    for (const [index, item] of value.entries()) collect(item, `${pointer}/${index}`, findings);
  } else if (isPlainObject(value)) {
    for (const key of Object.keys(value)) {
      const below = extendPointer(pointer, key);
      findings.push(...checkKey(key, below));
      collect(value[key] ?? null, below, findings);
    }
  }
}

function checkKey(key: string, pointer: string): DefinitionFinding[] {
  if (isForbiddenName(key)) {
    return [{ severity: 'error', code: 'name_forbidden', pointer, message: `the key ${key} is not allowed` }];
  }
  if (!key.includes('{{')) return [];
  const message = 'object keys are never templates; this one is taken as it is written';
  return [{ severity: 'warning', code: 'key_not_template', pointer, message }];
}
