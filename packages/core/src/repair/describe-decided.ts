/** Whose decisions a repair follows, in words. Browsers use it, so it imports no rule of repairs. */
import type { Json } from '../contracts/primitives.ts';
import { isList, isPlainObject } from '../json/values.ts';

/** `as decided by ana, ben (3 times)`; null for a value that is no `AsDecided`. */
export function describeDecided(value: Json | undefined): string | null {
  if (!isPlainObject(value) || !isList(value.by ?? null) || typeof value.times !== 'number') return null;
  const names = (value.by as readonly Json[]).join(', ');
  return `as decided by ${names} (${value.times} ${value.times === 1 ? 'time' : 'times'})`;
}
