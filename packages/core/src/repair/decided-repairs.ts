/**
 * Learning from decisions about repairs. Each proposal of a review has an identity: its operation, its place in the
 * schema, and the schema of that place. The decision of a person about a proposal is evidence for or against its
 * identity. An identity with enough evidence for it and none against is sure: level 0 applies such a proposal by
 * itself.
 *
 * D1 Evidence is about identities that one proposal alone has; decisions cannot distinguish two of one identity. D2
 * Level 0 applies a decided repair only if exactly one proposal for the input is a decided one. D3 An identity holds no
 * value of an input, and no key of a map.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import type { RepairIdentity, ReviewProposal } from '../contracts/review.ts';
import { isEqual } from '../expression/compare.ts';
import { canonicalJson, extendPointer, isList, splitPointer } from '../json/values.ts';
import { findTextFault } from '../skills/pattern.ts';
import { applyRepair, type RepairProposal } from './propose-repairs.ts';
import { createPlaces, type InputPlace, knowsKey, namesIn, type Places } from './schema-walk.ts';

/** SHA-256 of a text, hex. */
export type Digest = (text: string) => string;

export interface RepairedInput {
  readonly schema: JsonObject;
  readonly input: Json;
  readonly digest: Digest;
}

const longestPlace = 500;
/** A place with more schemas has no identity. */
const mostSchemas = 20;

/** The identity of each proposal; null where it has none, or another has the same (D1). */
export function identifyRepairs(
  from: RepairedInput,
  proposals: readonly RepairProposal[],
): readonly (RepairIdentity | null)[] {
  const found = proposals.map((proposal) => identify(from, proposal));
  return found.map((one, at) =>
    found.some((other, index) => index !== at && isSameRepair(one, other)) ? null : one,
  );
}

export function isSameRepair(a: RepairIdentity | null, b: RepairIdentity | null): boolean {
  if (a === null || b === null) return false;
  return a.operation === b.operation && a.place === b.place && a.schema_sha256 === b.schema_sha256;
}

function identify(
  { schema, input, digest }: RepairedInput,
  { kind, way, operations }: RepairProposal,
): RepairIdentity | null {
  const repaired = kind === 'combination' ? undefined : applyRepair(input, operations);
  const path = operations.at(-1)?.path;
  if (repaired === undefined || path === undefined) return null;
  const { place, schemas } = locate(createPlaces(schema, repaired), path);
  const isNamed = place.length <= longestPlace && findTextFault(place) === null;
  if (!isNamed || schemas.length === 0 || schemas.length > mostSchemas) return null;
  const texts = schemas.map((one) => canonicalJson(one)).toSorted();
  return { operation: `${kind}.${way}`, place, schema_sha256: digest(canonicalJson(texts)) };
}

/** A place of a valid input in the schema's terms; for a key that was left out, its name and the object around it. */
function locate(places: Places, pointer: string): { place: string; schemas: readonly JsonObject[] } {
  let at = places.at('') as InputPlace;
  let place = '';
  for (const key of splitPointer(pointer)) {
    const inside = places.child(at, key);
    const isStray = inside === undefined && !knowsKey(at.schemas, key);
    const isNamed = isStray || namesIn(at.schemas).includes(key);
    place = extendPointer(place, isList(at.value) ? '*' : isNamed ? key : '{}');
    if (inside === undefined) break;
    at = inside;
  }
  return { place, schemas: at.schemas };
}

// A decided repair is a skill, whose template names the identity.

export function writeRepairTemplate({ operation, place, schema_sha256 }: RepairIdentity): string {
  return `repair ${operation} at ${place} of schema ${schema_sha256}`;
}

const repairTemplate = /^repair (\S+) at (.*) of schema ([0-9a-f]{64})$/;

/** Null for a template of another kind. */
export function readRepairTemplate(text: string): RepairIdentity | null {
  const [, operation, place, schema_sha256] = repairTemplate.exec(text) ?? [];
  if (operation === undefined || place === undefined || schema_sha256 === undefined) return null;
  return { operation, place, schema_sha256 };
}

/** The index of the one proposal that is decided (D2); null: there is none, or several. */
export function chooseDecided(
  proposed: readonly (RepairIdentity | null)[],
  decided: readonly RepairIdentity[],
): number | null {
  const [only, ...others] = proposed.flatMap((one, at) =>
    decided.some((other) => isSameRepair(one, other)) ? [at] : [],
  );
  return only === undefined || others.length > 0 ? null : only;
}

// Evidence, and the rule for it.

export interface RepairEvidence {
  readonly outcome: 'for' | 'against';
  readonly run_id: string;
}

const fewest = { decisions: 3, runs: 2 } as const;

export function isSure(evidence: readonly RepairEvidence[]): boolean {
  const runs = new Set(evidence.map(({ run_id }) => run_id));
  const isAgreed = evidence.every(({ outcome }) => outcome === 'for');
  return isAgreed && evidence.length >= fewest.decisions && runs.size >= fewest.runs;
}

/** What a person decided about the proposals of a review, and how it went. */
export type DecidedProposals =
  | { readonly kind: 'rejected' }
  /** A person's input was executed; `failed` for the input's own sake. */
  | { readonly kind: 'succeeded' | 'failed'; readonly input: Json };

export interface WeighedProposal {
  /** Its index. */
  readonly proposal: number;
  readonly repair: RepairIdentity;
  readonly outcome: RepairEvidence['outcome'];
}

/**
 * The evidence of one decision. An input counts as the proposal that it equals, also if the person typed it. A failed
 * input is no evidence about the proposals that were not chosen.
 */
export function weighProposals(
  proposals: readonly ReviewProposal[],
  decided: DecidedProposals,
): readonly WeighedProposal[] {
  return proposals.flatMap(({ input, repair }, proposal): readonly WeighedProposal[] => {
    if (repair === undefined) return [];
    const isChosen = decided.kind !== 'rejected' && isEqual(decided.input, input);
    if (decided.kind === 'failed' && !isChosen) return [];
    const outcome = isChosen && decided.kind === 'succeeded' ? 'for' : 'against';
    return [{ proposal, repair, outcome }];
  });
}
