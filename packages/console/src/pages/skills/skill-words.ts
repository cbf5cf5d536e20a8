/** A skill in words, also where its instructions are a JSON Patch. */
import { isPlainObject } from '@capstan/core/json/values';

const verbs: Readonly<Record<string, string>> = {
  add: 'sets',
  replace: 'sets',
  remove: 'removes',
  move: 'moves',
  copy: 'copies',
};

function describeChange(change: unknown): string | null {
  if (!isPlainObject(change)) return null;
  const { op, path, from, value } = change;
  const verb = typeof op === 'string' ? verbs[op] : undefined;
  if (verb === undefined || typeof path !== 'string') return null;
  const place = path.replace(/^\//, '');
  if (typeof from === 'string') return `${verb} ${from.replace(/^\//, '')} to ${place}`;
  return value === undefined ? `${verb} ${place}` : `${verb} ${place} to ${JSON.stringify(value)}`;
}

/** `sets rate to 44100`; other instructions are given as they are. */
export function describeInstructions(instructions: string): string {
  if (!instructions.trimStart().startsWith('[')) return instructions;
  try {
    const changes: unknown = JSON.parse(instructions);
    const words = Array.isArray(changes) ? changes.map(describeChange) : [];
    return words.length === 0 || words.includes(null) ? instructions : words.join(', ');
  } catch {
    return instructions;
  }
}
