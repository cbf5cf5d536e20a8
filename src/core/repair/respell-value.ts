/** A text that differs from an allowed one by white space, case, separators or a typing error. */
import type { Json } from '../../contracts/primitives.ts';
import { type Broken, type Candidate, replaceValue, show } from './candidate.ts';
import { findNearest } from './near-name.ts';
import { valueAt } from './operation.ts';
import type { SchemaFinding } from './schema-finding.ts';

const longestText = 256;

type Scalar = string | number | boolean;

function isScalar(value: unknown): value is Scalar {
  return typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value);
}

function respell(pointer: string, value: Scalar, spelling: Json): Candidate {
  return replaceValue('respell', {
    pointer,
    oldValue: value,
    newValue: spelling,
    description: `spell ${show(value)} as ${show(spelling)}`,
  });
}

function readText({ input }: Broken, pointer: string): string | null {
  const value = valueAt(input, pointer);
  return pointer !== '' && typeof value === 'string' && value.length <= longestText ? value : null;
}

/** The closest of the allowed values, if no other is as close. */
export function chooseAllowed(broken: Broken, { pointer, params }: SchemaFinding): readonly Candidate[] {
  const value = valueAt(broken.input, pointer);
  if (pointer === '' || !isScalar(value) || String(value).length > longestText) return [];
  const allowed = [params.allowedValues ?? params.allowedValue].flat().filter(isScalar);
  const nearest = closest(value, allowed);
  const [only] = nearest;
  return nearest.length === 1 && only !== undefined ? [respell(pointer, value, only)] : [];
}

function closest(value: Scalar, allowed: readonly Scalar[]): readonly Scalar[] {
  const text = String(value).trim();
  const same = allowed.filter((one) => String(one) === text);
  if (same.length > 0 || typeof value !== 'string') return same;
  const texts = allowed.filter((one) => typeof one === 'string');
  const alike = texts.filter((one) => one.trim().toLowerCase() === text.toLowerCase());
  return alike.length > 0 ? alike : findNearest(text, texts);
}

/** White space around it, else its case. */
export function tidyFormat(broken: Broken, { pointer }: SchemaFinding): readonly Candidate[] {
  const text = readText(broken, pointer);
  if (text === null) return [];
  const spellings = new Set(text === text.trim() ? [text.toLowerCase(), text.toUpperCase()] : [text.trim()]);
  return [...spellings]
    .filter((spelling) => spelling !== text)
    .map((spelling) => respell(pointer, text, spelling));
}

/** White space only: what a pattern is about is not known. */
export function trimText(broken: Broken, { pointer }: SchemaFinding): readonly Candidate[] {
  const text = readText(broken, pointer);
  return text === null || text === text.trim() ? [] : [respell(pointer, text, text.trim())];
}
