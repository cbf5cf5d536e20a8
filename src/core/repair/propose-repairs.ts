/**
 * Proposes repairs of an input from its schema, without a model: single operations, each tried on the input and shown
 * only if the whole input is valid then. A repair may be applied automatically only if it is the only one; nothing is
 * chosen or invented. Work is bounded for any input: few findings are considered and few inputs tried. A validator
 * reports one mistake several times, such as a branch's demand and the failed union, or a superfluous key and a missing
 * one. Faults are the groups that remain independent; no single operation cures two of them. A repair never changes,
 * invents or drops a URL, a media reference or anything at `output_path`. A key around such a value may be renamed, and
 * the value put into a list: it stays the same.
 */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { applyPatch, type PatchOperation } from '../json/patch.ts';
import { splitPointer } from '../json/values.ts';
import { outputPathKey } from '../media.ts';
import type { Broken, Candidate, RepairKind, SchemaFinding } from './candidate.ts';
import { moveKeys, settleUnknownKey, supplyKey } from './keys.ts';
import { chooseAllowed, clampNumber, coerceValue, tidyFormat, trimText } from './values.ts';

export interface RepairProposal {
  /** One operation and its guards; several for a combination. */
  readonly operations: readonly PatchOperation[];
  readonly kind: RepairKind | 'combination';
  /** Pointer of the fault in the input; empty for a combination. */
  readonly pointer: string;
  readonly description: string;
}

export interface Repairs {
  /** Each makes the whole input valid; the sure ones come first. */
  readonly proposals: readonly RepairProposal[];
  /** The proposal that may be applied without a decision. */
  readonly applicable: RepairProposal | null;
}

export interface RepairQuestion {
  /** JSON Schema 2020-12 or draft 07, with local references. */
  readonly schema: JsonObject;
  readonly input: Json;
  /** Faults of an input; empty when it is valid. */
  readonly errorsOf: (input: Json) => readonly SchemaFinding[];
}

const mostFindings = 20;
const mostFaults = 4;
const mostTrials = 32;
const fewestTrials = 4;
/** The values that all trials together may visit. */
const mostValues = 50_000;
const deepest = 100;
const none: Repairs = { proposals: [], applicable: null };

export function proposeRepairs(question: RepairQuestion): Repairs {
  const findings = question.errorsOf(question.input).slice(0, mostFindings);
  const roots = findRoots(findings);
  if (roots.length > 2 * mostFaults) return none;
  const faults = groupFaults(roots, listCandidates(question, findings));
  if (faults.length === 0 || faults.length > mostFaults) return none;
  const [only] = faults;
  return only !== undefined && faults.length === 1
    ? proposeSingles(question, only.candidates)
    : proposeCombinations(question, faults);
}

function listCandidates(question: RepairQuestion, findings: readonly SchemaFinding[]): readonly Candidate[] {
  const found = new Map<string, Candidate>();
  const single = findings.flatMap((finding) => proposeCandidates(question, finding));
  for (const candidate of [...single, ...moveKeys(question, findings)]) {
    if (isProtectedChange(candidate.change)) continue;
    const key = identify(candidate);
    if (!found.has(key)) found.set(key, candidate);
  }
  return [...found.values()];
}

/** Equal for candidates with the same effect. */
function identify({ kind, operations }: Candidate): string {
  const last = operations.at(-1);
  return kind === 'wrap' ? `${kind} ${last?.path}` : JSON.stringify(last);
}

/** Allows fewer trials for a large input, so that they take about as long as for a small one. */
function allowTrials(input: Json): number {
  return Math.min(
    mostTrials,
    Math.max(fewestTrials, Math.floor(mostValues / countValues(input, mostValues))),
  );
}

/** Counts values: long texts count more, deep nesting more than the limit. Stops soon after the limit. */
function countValues(value: Json, limit: number, depth = 0): number {
  if (typeof value === 'string') return 1 + (value.length >> 6);
  if (value === null || typeof value !== 'object') return 1;
  if (depth > deepest) return limit + 1;
  let count = 1;
  for (const key in value) {
    if (count > limit) break;
    count += countValues((value as JsonObject)[key] ?? null, limit - count, depth + 1);
  }
  return count;
}

/** @returns undefined when an operation does not apply */
export function applyRepair(input: Json, operations: readonly PatchOperation[]): Json | undefined {
  const result = applyPatch(input, operations);
  return result.ok ? result.value : undefined;
}

function isCuredBy({ input, errorsOf }: RepairQuestion, operations: readonly PatchOperation[]): boolean {
  const repaired = applyRepair(input, operations);
  return repaired !== undefined && errorsOf(repaired).length === 0;
}

function proposeSingles(question: RepairQuestion, candidates: readonly Candidate[]): Repairs {
  const tried = candidates.slice(0, allowTrials(question.input));
  const cures = keepMinimal(tried.filter(({ operations }) => isCuredBy(question, operations)));
  const proposals = [...cures]
    .sort((a, b) => Number(b.isSure) - Number(a.isSure))
    .map(({ operations, kind, pointer, description }) => ({ operations, kind, pointer, description }));
  const isOnly = cures.length === 1 && tried.length === candidates.length;
  return { proposals, applicable: isOnly && cures[0]?.isSure === true ? (proposals[0] ?? null) : null };
}

/** A renamed key keeps what the author wrote, so dropping it or filling in for it is no alternative. */
function keepMinimal(cures: readonly Candidate[]): readonly Candidate[] {
  const operations = cures.flatMap((cure) => cure.operations);
  const settled = new Set(operations.flatMap((one) => (one.op === 'move' ? [one.from, one.path] : [])));
  return cures.filter(({ kind, pointer }) => (kind !== 'drop' && kind !== 'fill') || !settled.has(pointer));
}

/** One operation for each fault; shown, never applied automatically. */
function proposeCombinations(question: RepairQuestion, faults: readonly Fault[]): Repairs {
  const choices = faults.map(({ candidates }) => keepMinimal(candidates));
  const proposals = combine(choices, allowTrials(question.input))
    .map((chosen) => ({
      operations: chosen.flatMap(({ operations }) => operations),
      kind: 'combination' as const,
      pointer: '',
      description: chosen.map(({ description }) => description).join('; '),
    }))
    .filter(({ operations }) => isCuredBy(question, operations));
  return { proposals, applicable: null };
}

function combine(
  choices: readonly (readonly Candidate[])[],
  most: number,
): readonly (readonly Candidate[])[] {
  return choices.reduce<readonly (readonly Candidate[])[]>(
    (chosen, choice) => chosen.flatMap((some) => choice.map((one) => [...some, one])).slice(0, most),
    [[]],
  );
}

/** Candidate repairs of a finding, one operation each. */
function proposeCandidates(broken: Broken, finding: SchemaFinding): readonly Candidate[] {
  switch (finding.keyword) {
    case 'required':
    case 'dependentRequired':
      return supplyKey(broken, finding);
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return settleUnknownKey(broken, finding);
    case 'type':
      return coerceValue(broken, finding);
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
    case 'multipleOf':
      return clampNumber(broken, finding);
    case 'enum':
    case 'const':
      return chooseAllowed(broken, finding);
    case 'format':
      return tidyFormat(broken, finding);
    case 'pattern':
      return trimText(broken, finding);
    default:
      return [];
  }
}

/** Keywords whose finding follows from a fault inside the value, in one branch or the other. */
const unions: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'if', 'not', 'contains', 'propertyNames']);

function isWithin(pointer: string, outer: string): boolean {
  return pointer === outer || pointer.startsWith(`${outer}/`);
}

function areRelated(a: string, b: string): boolean {
  return isWithin(a, b) || isWithin(b, a);
}

/** Pointers of the faults, without those that other findings imply. A fault has one or two. */
function findRoots(findings: readonly SchemaFinding[]): readonly string[] {
  const covers = findings.filter(({ keyword }) => unions.has(keyword)).map(({ pointer }) => pointer);
  const isCovered = (pointer: string): boolean =>
    covers.some((cover) => cover !== pointer && isWithin(pointer, cover));
  return [...new Set(findings.map(({ pointer }) => pointer))].filter((pointer) => !isCovered(pointer));
}

function touchedBy({ operations }: Candidate): readonly string[] {
  return operations.flatMap((operation) =>
    operation.op === 'move' ? [operation.from, operation.path] : [operation.path],
  );
}

/** A fault, and the candidates that touch all of it. */
interface Fault {
  readonly candidates: readonly Candidate[];
}

function groupFaults(roots: readonly string[], candidates: readonly Candidate[]): readonly Fault[] {
  const touched = candidates.map((candidate) => {
    const places = touchedBy(candidate);
    return { candidate, roots: roots.filter((root) => places.some((place) => areRelated(place, root))) };
  });
  const links = [
    ...touched.map((one) => one.roots),
    ...roots.map((root) => roots.filter((other) => areRelated(root, other))),
  ];
  return links.reduce<readonly (readonly string[])[]>(merge, []).map((pointers) => ({
    candidates: touched
      .filter((one) => pointers.every((pointer) => one.roots.includes(pointer)))
      .map(({ candidate }) => candidate),
  }));
}

function merge(groups: readonly (readonly string[])[], link: readonly string[]): (readonly string[])[] {
  if (link.length === 0) return [...groups];
  const joined = groups.filter((group) => group.some((pointer) => link.includes(pointer)));
  const others = groups.filter((group) => !joined.includes(group));
  return [...others, [...new Set([...joined.flat(), ...link])]];
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
