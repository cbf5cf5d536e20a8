/**
 * Submits a definition: an equal one is recognised by its digest, a different one under the same version is refused
 * with the differences, and an invalid one is refused with its errors.
 */

import { createHash } from 'node:crypto';
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Finding } from '../contracts/pipeline-answers.ts';
import type { Json } from '../contracts/primitives.ts';
import type { ProblemItem } from '../contracts/problem.ts';
import { AppError } from '../errors/app-error.ts';
import { canonicalJson, extendPointer, isList } from '../json/values.ts';

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

/** At most 20, each at the deepest place where the values are not alike. */
export function findDifferences(stored: Json, submitted: Json): readonly DefinitionDifference[] {
  const found: DefinitionDifference[] = [];
  collect({ pointer: '', stored, submitted }, found);
  return found;
}

/** The differences between two definitions, as items of a problem. */
export function describeDifferences(stored: Json, submitted: Json): ProblemItem[] {
  return findDifferences(stored, submitted).map((difference) => ({
    pointer: difference.pointer,
    code: 'differs',
    message: `stored is ${show(difference.stored)}, submitted is ${show(difference.submitted)}`,
  }));
}

/** SHA-256 in hex, independent of key order. */
export function digestDefinition(definition: PipelineDefinition): string {
  return createHash('sha256')
    .update(canonicalJson(definition as unknown as Json))
    .digest('hex');
}

function toItem({ severity: _, ...item }: Finding): ProblemItem {
  return item;
}

/** The errors among the findings, as an API error. */
export function refuseFindings(findings: readonly Finding[], name = 'the definition'): AppError {
  const errors = findings.filter(({ severity }) => severity === 'error');
  const count = errors.length === 1 ? 'one error' : `${errors.length} errors`;
  const first = errors[0] === undefined ? '' : `: ${errors[0].message}`;
  return new AppError('definition_invalid', `${name} has ${count}${first}`, { errors: errors.map(toItem) });
}
