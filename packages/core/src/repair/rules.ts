/**
 * The table of repairs: the possible faults at a place of an input, whatever the validator reports there. A place is
 * looked at when a finding names it, or lies around it in a union of which the validator only reports that no branch
 * fits.
 */
import type { Json } from '../contracts/primitives.ts';
import { splitPointer } from '../json/values.ts';
import { outputPathKey } from '../media.ts';
import type { Candidate, Certainty, SchemaFinding } from './candidate.ts';
import { unions } from './faults.ts';
import { dropKeys, fillKeys, readKeys, renameKeys, renameUnits } from './keys.ts';
import { moveKeys, moveNearby } from './moves.ts';
import { type InputPlace, keysOf, type Places } from './schema-walk.ts';
import {
  chooseAllowed,
  clampNumber,
  coerceValue,
  dropRepeated,
  leaveOutNull,
  tidyText,
  unwrapItem,
  wrapItem,
} from './values.ts';

/** Of the value itself. */
const valueRules: readonly ((place: InputPlace) => readonly Candidate[])[] = [
  coerceValue,
  chooseAllowed,
  unwrapItem,
  wrapItem,
  leaveOutNull,
  tidyText,
  dropRepeated,
  clampNumber,
];

/** Of the keys of an object. */
const keyRules = [renameKeys, renameUnits, moveNearby, fillKeys, dropKeys] as const;

const order: readonly Certainty[] = ['certain', 'likely', 'guess'];
/** Places that are looked at in a union, or in a whole input. */
const mostPlaces = 300;

/** Candidates at the places, the best evidence first, each effect once. */
export function listCandidates(
  places: Places,
  at: readonly InputPlace[],
  others: readonly Candidate[] = [],
): readonly Candidate[] {
  const found = new Map<string, Candidate>();
  for (const candidate of [...at.flatMap((place) => proposeAt(places, place)), ...others]) {
    const key = identify(candidate);
    if (!isProtectedChange(candidate.change) && !found.has(key)) found.set(key, candidate);
  }
  return [...found.values()].sort((a, b) => order.indexOf(a.evidence) - order.indexOf(b.evidence));
}

function proposeAt(places: Places, place: InputPlace): readonly Candidate[] {
  const keys = readKeys(place, places);
  return [
    ...(place.schemas.length === 0 ? [] : valueRules.flatMap((rule) => rule(place))),
    ...(keys === null ? [] : keyRules.flatMap((rule) => rule(keys))),
  ];
}

/** Equal for candidates with the same effect. */
function identify({ kind, operations }: Candidate): string {
  const last = operations.at(-1);
  return kind === 'wrap' ? `${kind} ${last?.path}` : JSON.stringify(last);
}

/** Candidates at the places that findings name. */
export function followFindings(
  places: Places,
  findings: readonly SchemaFinding[],
  input: Json,
): readonly Candidate[] {
  const named = findings.flatMap(({ pointer }) => [places.at(pointer) ?? []].flat());
  const holders = findings.flatMap(
    ({ pointer }) => places.at(pointer.slice(0, Math.max(0, pointer.lastIndexOf('/')))) ?? [],
  );
  const inside = findings.flatMap(({ keyword, pointer }) =>
    unions.has(keyword) ? listBelow(places, places.at(pointer)) : [],
  );
  const all = [...new Set([...named, ...holders, ...inside])];
  return listCandidates(places, all.slice(0, mostPlaces), moveKeys(places, findings, input));
}

/** The place and those inside it, level by level. */
export function listBelow(places: Places, top: InputPlace | undefined): readonly InputPlace[] {
  const found = top === undefined ? [] : [top];
  for (const place of found) {
    for (const key of keysOf(place.value).slice(0, mostPlaces)) {
      const child = places.child(place, key);
      if (child !== undefined && found.length < mostPlaces) found.push(child);
    }
  }
  return found;
}

/** A value deeper than this counts as holding a reference. */
const deepestReference = 100;

function holdsReference(value: Json | undefined, depth = 0): boolean {
  if (typeof value === 'string') return value.includes('://');
  if (value === null || typeof value !== 'object') return false;
  if (depth > deepestReference) return true;
  return Object.entries(value).some(
    ([key, child]) => key === outputPathKey || holdsReference(child, depth + 1),
  );
}

/**
 * A forbidden repair: it changes, invents or drops a URL, a media reference or anything at `output_path`. A key around
 * such a value may be renamed, and the value put into a list: it stays the same.
 */
function isProtectedChange({ pointer, oldValue, newValue }: Candidate['change']): boolean {
  if (splitPointer(pointer).includes(outputPathKey)) return true;
  return oldValue !== newValue && (holdsReference(oldValue) || holdsReference(newValue));
}
