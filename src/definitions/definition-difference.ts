import type { Json } from '../contracts/primitives.ts';
import type { ProblemItem } from '../contracts/problem.ts';
import { extendPointer } from '../core/json-pointer.ts';
import { isList } from '../core/json-type.ts';

const shownDifferences = 20;
const shownCharacters = 60;

interface DefinitionDifference {
  readonly pointer: string;
  readonly stored: Json | undefined;
  readonly submitted: Json | undefined;
}

function fieldsOf(value: Json | undefined): ReadonlyMap<string, Json> | null {
  if (typeof value !== 'object' || value === null) return null;
  const entries: [string, Json][] = Object.entries(value).filter(([, field]) => field !== undefined);
  return new Map(entries);
}

function isSameContainer(a: Json | undefined, b: Json | undefined): boolean {
  return (
    typeof a === 'object' && typeof b === 'object' && a !== null && b !== null && isList(a) === isList(b)
  );
}

function collect(difference: DefinitionDifference, found: DefinitionDifference[]): void {
  const { pointer, stored, submitted } = difference;
  if (found.length >= shownDifferences || stored === submitted) return;
  const storedFields = fieldsOf(stored);
  const submittedFields = fieldsOf(submitted);
  if (!isSameContainer(stored, submitted) || storedFields === null || submittedFields === null) {
    found.push(difference);
    return;
  }
  for (const key of new Set([...storedFields.keys(), ...submittedFields.keys()])) {
    const below = { stored: storedFields.get(key), submitted: submittedFields.get(key) };
    collect({ pointer: extendPointer(pointer, key), ...below }, found);
  }
}

function show(value: Json | undefined): string {
  return value === undefined ? 'nothing' : JSON.stringify(value).slice(0, shownCharacters);
}

/** Where two definitions differ, as items of a problem; at most 20. */
export function describeDifferences(stored: Json, submitted: Json): ProblemItem[] {
  const found: DefinitionDifference[] = [];
  collect({ pointer: '', stored, submitted }, found);
  return found.map((difference) => ({
    pointer: difference.pointer,
    code: 'differs',
    message: `stored is ${show(difference.stored)}, submitted is ${show(difference.submitted)}`,
  }));
}
