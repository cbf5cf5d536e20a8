/**
 * Proposes repairs of an input from its schema, without a model: single changes, each applied to the input and shown
 * only if the whole input is valid then. A repair may be applied automatically only if its evidence is certain and
 * nothing else is as good; nothing is chosen or invented. Work is bounded for any input: few findings and places are
 * considered and few inputs tried. A repair never changes, invents or drops a URL, a media reference or anything at
 * `output_path`. A key around such a value may be renamed, and the value put into a list: it stays the same.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { applyPatch, type PatchOperation } from '../json/patch.ts';
import { canonicalJson } from '../json/values.ts';
import type { Candidate, RepairKind, SchemaFinding } from './candidate.ts';
import { type Fault, findRoots, groupFaults } from './faults.ts';
import { followFindings, listBelow, listCandidates } from './rules.ts';
import { createPlaces, type Places } from './schema-walk.ts';

export interface RepairProposal {
  /** One change and its guards; several for a combination. */
  readonly operations: readonly PatchOperation[];
  readonly kind: RepairKind | 'combination';
  /** How the value is read or written, within its kind; empty for a combination. */
  readonly way: string;
  /** Pointer of the fault in the input; empty for a combination. */
  readonly pointer: string;
  /** A sentence: the change, and the reason for it. */
  readonly description: string;
}

export interface Repairs {
  /** Three at most, the best first. Each makes the whole input valid. */
  readonly proposals: readonly RepairProposal[];
  /** The proposal that may be applied without a decision; then it is the only one. */
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
const mostProposals = 3;
/** The values that all trials together may visit. */
const mostValues = 50_000;
const deepest = 100;
const none: Repairs = { proposals: [], applicable: null };

export function proposeRepairs(question: RepairQuestion): Repairs {
  const { schema, input } = question;
  const findings = question.errorsOf(input).slice(0, mostFindings);
  if (findings.length === 0) return none;
  const places = createPlaces(schema, input);
  const trials = createTrials(question);
  const candidates = followFindings(places, findings, input);
  const faults = groupFaults(findRoots(findings), candidates);
  const [only] = faults;
  const repairs =
    only !== undefined && faults.length === 1
      ? proposeSingles(trials, only.candidates)
      : faults.length > mostFaults
        ? none
        : proposeCombinations(trials, faults);
  return repairs.proposals.length > 0 ? repairs : proposeAnywhere(trials, places);
}

/** Where no place that a finding names has a cure, as in a union whose other branch was meant. */
function proposeAnywhere(trials: Trials, places: Places): Repairs {
  return trials.left() === 0
    ? none
    : proposeSingles(trials, listCandidates(places, listBelow(places, places.at(''))));
}

/** Tries operations on the input, each once, as long as there are trials left. */
interface Trials {
  readonly left: () => number;
  readonly isTried: (operations: readonly PatchOperation[]) => boolean;
  /** The repaired input, if it is valid. */
  readonly cure: (operations: readonly PatchOperation[]) => Json | undefined;
}

function createTrials({ input, errorsOf }: RepairQuestion): Trials {
  const tried = new Set<string>();
  const most = allowTrials(input);
  const left = (): number => most - tried.size;
  const isTried: Trials['isTried'] = (operations) => tried.has(JSON.stringify(operations));
  const cure: Trials['cure'] = (operations) => {
    const repaired = left() > 0 && !isTried(operations) ? applyRepair(input, operations) : undefined;
    if (repaired === undefined) return undefined;
    tried.add(JSON.stringify(operations));
    return errorsOf(repaired).length === 0 ? repaired : undefined;
  };
  return { left, isTried, cure };
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

function proposeSingles(trials: Trials, candidates: readonly Candidate[]): Repairs {
  const cures = new Map<string, Candidate>();
  for (const candidate of candidates) {
    const cured = trials.cure(candidate.operations);
    const key = cured === undefined ? undefined : canonicalJson(cured);
    if (key !== undefined && !cures.has(key)) cures.set(key, candidate);
  }
  const minimal = keepMinimal([...cures.values()]);
  const untried = trials.left() > 0 ? [] : candidates.filter(({ operations }) => !trials.isTried(operations));
  const strong = [...minimal, ...untried].filter(({ evidence }) => evidence !== 'guess');
  const [only] = strong;
  const isOnly = strong.length === 1 && only?.evidence === 'certain' && minimal.includes(only);
  if (isOnly) return { proposals: [toProposal(only)], applicable: toProposal(only) };
  return { proposals: minimal.slice(0, mostProposals).map(toProposal), applicable: null };
}

function toProposal({ operations, kind, way, pointer, description }: Candidate): RepairProposal {
  return { operations, kind, way, pointer, description };
}

/** A renamed key keeps what the author wrote, so dropping it or filling in for it is no alternative. */
function keepMinimal(cures: readonly Candidate[]): readonly Candidate[] {
  const kept = cures.filter(({ evidence }) => evidence !== 'guess');
  const operations = kept.flatMap((cure) => cure.operations);
  const settled = new Set(operations.flatMap((one) => (one.op === 'move' ? [one.from, one.path] : [])));
  return cures.filter(({ kind, pointer }) => (kind !== 'drop' && kind !== 'fill') || !settled.has(pointer));
}

/** One change for each fault; shown, never applied automatically. */
function proposeCombinations(trials: Trials, faults: readonly Fault[]): Repairs {
  const choices = faults.map(({ candidates }) => keepMinimal(candidates));
  const proposals = combine(choices, trials.left())
    .map((chosen) => ({
      operations: chosen.flatMap(({ operations }) => operations),
      kind: 'combination' as const,
      way: '',
      pointer: '',
      description: chosen.map(({ description }) => description).join('; '),
    }))
    .filter(({ operations }) => trials.cure(operations) !== undefined);
  return { proposals: proposals.slice(0, mostProposals), applicable: null };
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
