/**
 * Gathers the facts that a definition is checked against: the registered capabilities, their inputs and outputs, and
 * the pipelines that it runs.
 *
 * The specs that count for a definition's calls are those of instances that are up, otherwise all known ones, any of
 * which may come back. The specs of instances that are up come from memory; the rest is queried for all steps together.
 */

import { deepestSubRun } from '@capstan/core/contracts/limits';
import type { PipelineDefinition, StepDefinition } from '@capstan/core/contracts/pipeline';
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import {
  createReferenceJudge,
  findPipeline,
  referencesOf,
} from '@capstan/core/definition/checks/check-availability';
import type { CapabilityForm, DefinitionFacts, PipelineForm } from '@capstan/core/definition/checks/finding';
import { createInputForms, type InputForms, vetOwnSchemas } from '@capstan/core/definitions/input-forms';
import { digestDefinition } from '@capstan/core/definitions/submission';
import { createTextCache, type TextCache } from '@capstan/core/definitions/text-cache';
import { createNameSuggester } from '@capstan/core/nearest-name';
import type { SchemaVetter } from '@capstan/core/schemas/schema-vetter';
import semver from 'semver';
import { listSecrets } from '../../db/access/secret.ts';
import type { Db } from '../../db/connect.ts';
import { listCapabilityNames } from '../../db/instance/capability-name.ts';
import { findSpecs, listKnownSpecs } from '../../db/instance/capability-spec.ts';
import {
  findReferenced,
  listPipelineNames,
  listVersionNames,
  type ReferencedRow,
} from '../../db/pipeline.ts';
import { endTurn, turnFor } from '../expression-work.ts';
import type { FleetPoller } from '../fleet/fleet-poller.ts';
import { isWanted, pickPresentSpecs, type SpecTarget } from '../fleet/specs.ts';

interface SpecDigests {
  /** The digests of each kind of call, by `callOf`. */
  readonly byCall: ReadonlyMap<string, readonly string[]>;
  /** The first digest of each capability. */
  readonly byCapability: Readonly<Record<string, string>>;
}

/** The parts of the context that checks of definitions need. */
export interface CheckCtx {
  readonly db: Db;
  readonly fleet: Pick<FleetPoller, 'seenBy'>;
  readonly vetter: Pick<SchemaVetter, 'vet'>;
  readonly checked: CheckedDefinitions;
}

/** Steps with equal text are served by the same instances. */
function callOf({ capability, capability_version, tags = [] }: StepDefinition): string {
  return JSON.stringify([capability, capability_version ?? null, tags]);
}

async function findSpecDigests(
  { db, fleet }: Pick<CheckCtx, 'db' | 'fleet'>,
  projectId: string,
  calls: Calls,
): Promise<SpecDigests> {
  const seen = fleet.seenBy(projectId);
  const byCall = new Map<string, readonly string[]>();
  const absent = new Map<string, SpecTarget>();
  for (const [call, target] of calls) {
    const present = pickPresentSpecs(seen, target);
    if (present.length > 0)
      byCall.set(
        call,
        present.map(({ digest }) => digest),
      );
    else absent.set(call, target);
  }
  const names = [...new Set([...absent.values()].map(({ capability }) => capability))];
  const known = names.length === 0 ? [] : await listKnownSpecs(db, { projectId, names });
  for (const [call, target] of absent) {
    const specs = known.filter(
      ({ name, version }) => name === target.capability && isWanted(target, version),
    );
    byCall.set(
      call,
      specs.map(({ digest }) => digest),
    );
  }
  return { byCall, byCapability: pickFirst(calls, byCall) };
}

type Calls = ReadonlyMap<string, SpecTarget>;

/** The kinds of calls that a definition makes, by `callOf`. */
function listCalls({ steps }: Pick<PipelineDefinition, 'steps'>): Calls {
  const calls = new Map<string, SpecTarget>();
  for (const step of steps) {
    const { capability, capability_version: versionRange = null, tags = [] } = step;
    if (capability === undefined || calls.has(callOf(step))) continue;
    if (versionRange !== null && semver.validRange(versionRange) === null) continue;
    calls.set(callOf(step), { capability, versionRange, tags });
  }
  return calls;
}

function pickFirst(calls: Calls, byCall: SpecDigests['byCall']): Readonly<Record<string, string>> {
  const first = new Map<string, string>();
  for (const [call, { capability }] of calls) {
    const digest = byCall.get(call)?.[0];
    if (digest !== undefined && !first.has(capability)) first.set(capability, digest);
  }
  return Object.fromEntries(first);
}

/** @returns the forms of a step; none when its capability is unknown */
async function readSpecForms(
  { db, forms }: { readonly db: Db; readonly forms: InputForms },
  { byCall }: Pick<SpecDigests, 'byCall'>,
): Promise<(step: StepDefinition) => readonly CapabilityForm[]> {
  const read = new Map<string, CapabilityForm>();
  const unread: string[] = [];
  for (const digest of new Set([...byCall.values()].flat())) {
    const form = forms.ofSpec(digest);
    if (form === undefined) unread.push(digest);
    else read.set(digest, form);
  }
  const specs = unread.length === 0 ? new Map() : await findSpecs(db, unread);
  for (const [digest, spec] of specs) {
    const turn = turnFor();
    if (turn !== null) await turn;
    read.set(digest, forms.addSpec(digest, spec));
  }
  return (step) => (byCall.get(callOf(step)) ?? []).flatMap((digest) => read.get(digest) ?? []);
}

interface PipelineForms {
  /** By reference. */
  readonly forms: ReadonlyMap<string, PipelineForm>;
  /** The digests of the pipelines found, in the order of their references: what the forms depend on. */
  readonly digests: readonly string[];
}

/** The most different references of a definition and of the pipelines below it. */
const mostReferences = 1_000;

/** The pipelines that a definition starts, and those below them: one query for each level. */
async function findPipelineForms(
  { db, forms }: { readonly db: Db; readonly forms: InputForms },
  projectId: string,
  { definition, beside = [] }: CheckedDefinition,
): Promise<PipelineForms> {
  const own = referencesOf(definition);
  if (own.length === 0) return { forms: new Map(), digests: [] };
  const rows = await followReferences({ db, projectId, beside }, own);
  if (rows === null) return { forms: new Map(own.map((reference) => [reference, tooMany])), digests: [] };
  const { pipeline, version } = definition;
  const judge = createReferenceJudge({ pipeline, version, references: own }, (reference) =>
    rows.get(reference),
  );
  const found = new Map<string, PipelineForm>();
  for (const reference of own) {
    const row = rows.get(reference);
    const fault = judge(reference);
    const turn = turnFor();
    if (turn !== null) await turn;
    if (fault === null && row !== undefined) found.set(reference, forms.ofPipeline(row));
    else if (fault !== null)
      found.set(reference, { ...fault, ...(row ? {} : await suggest(db, projectId, reference)) });
  }
  const digests = [...rows.values()].map(({ reference, digest }) => `${reference} ${digest}`).sort();
  return { forms: found, digests };
}

const tooMany: PipelineForm = {
  kind: 'refused',
  code: 'pipeline_limit',
  message: `the pipelines that it leads to are more than ${mostReferences}, the most allowed`,
};

/** The definition to check, and the valid definitions that count as stored for it. */
export interface CheckedDefinition {
  readonly definition: PipelineDefinition;
  readonly beside?: readonly PipelineDefinition[];
}

interface FoundRow extends ReferencedRow {
  readonly isContradicted?: boolean;
}

function toRow(reference: string, definition: PipelineDefinition): FoundRow {
  const { pipeline, version, job_schema, output } = definition;
  return {
    reference,
    pipeline,
    version,
    digest: digestDefinition(definition),
    job_schema: job_schema ?? null,
    has_output: output !== undefined,
    output: output ?? null,
    references: referencesOf(definition),
  };
}

interface Referenced {
  readonly db: Db;
  readonly projectId: string;
  readonly beside: readonly PipelineDefinition[];
}

/** The stored ones and the unstored ones beside them: a stored one is never replaced, but contradicted. */
async function findRows(
  { db, projectId, beside }: Referenced,
  references: readonly string[],
): Promise<FoundRow[]> {
  const stored = new Map(
    (await findReferenced(db, projectId, references)).map((row) => [row.reference, row]),
  );
  return references.flatMap((reference): FoundRow[] => {
    const row = stored.get(reference);
    const lying = findPipeline(beside, reference);
    if (row === undefined) return lying === undefined ? [] : [toRow(reference, lying)];
    const isSame = lying?.version !== row.version || digestDefinition(lying) === row.digest;
    return [isSame ? row : { ...row, isContradicted: true }];
  });
}

/** @returns the definitions that are referred to, as far as they exist; null when there are too many */
async function followReferences(
  around: Referenced,
  own: readonly string[],
): Promise<ReadonlyMap<string, FoundRow> | null> {
  const rows = new Map<string, FoundRow>();
  const asked = new Set<string>();
  let level = [...own];
  for (let depth = 0; depth <= deepestSubRun && level.length > 0; depth++) {
    for (const reference of level) asked.add(reference);
    if (asked.size > mostReferences) return null;
    const found = await findRows(around, level);
    for (const row of found) rows.set(row.reference, row);
    level = [...new Set(found.flatMap(({ references }) => references))].filter(
      (reference) => !asked.has(reference),
    );
  }
  return rows;
}

/** A stored pipeline or version whose name is close to the written one. */
async function suggest(
  db: Db,
  projectId: string,
  reference: string,
): Promise<{ readonly suggestion?: string | undefined }> {
  const [name = ''] = reference.split('@', 1);
  const names = await listPipelineNames(db, projectId);
  if (!names.includes(name)) return { suggestion: createNameSuggester(names)(name) };
  const versions = await listVersionNames(db, projectId, name);
  const near = createNameSuggester(versions.map((known) => `${name}@${known}`))(reference);
  return { suggestion: near ?? `versions of ${name} are ${versions.slice(0, 5).join(', ')}` };
}

/** The facts that may have changed since a definition was checked, with a way to read the others. */
interface PresentFacts {
  /** Equal text means equal findings. */
  readonly key: string;
  readonly specs: SpecDigests['byCapability'];
  readonly knownCapabilities: ReadonlySet<string>;
  readonly read: () => Promise<DefinitionFacts>;
}

/** The names that a definition asks for. */
interface Asked {
  readonly names: readonly string[];
  readonly calls: Calls;
  /** It may name secrets. */
  readonly namesSecrets: boolean;
}

/** The memory of definitions that this process has checked. */
export interface CheckedDefinitions {
  readonly forms: InputForms;
  readonly asked: WeakMap<PipelineDefinition, Asked>;
  /** The findings of a run's check, by digest and by the facts of that check. */
  readonly findings: TextCache<readonly Finding[]>;
}

export function createCheckedDefinitions(): CheckedDefinitions {
  return { forms: createInputForms(endTurn), asked: new WeakMap(), findings: createTextCache() };
}

function readAsked({ asked }: CheckedDefinitions, definition: PipelineDefinition): Asked {
  const before = asked.get(definition);
  if (before !== undefined) return before;
  const names = [...new Set(definition.steps.flatMap(({ capability }) => capability ?? []))];
  const namesSecrets = JSON.stringify(definition.steps).includes('secrets');
  const read = { names, calls: listCalls(definition), namesSecrets };
  asked.set(definition, read);
  return read;
}

export async function gatherFacts(
  { db, fleet, vetter, checked }: CheckCtx,
  projectId: string,
  subject: CheckedDefinition,
): Promise<PresentFacts> {
  const { forms } = checked;
  const { definition } = subject;
  const { names, calls, namesSecrets } = readAsked(checked, definition);
  const digests = await findSpecDigests({ db, fleet }, projectId, calls);
  const pipelines = await findPipelineForms({ db, forms }, projectId, subject);
  const knownCapabilities = await findRegistered({ db, fleet }, projectId, names);
  const unknown = names.filter((name) => !knownCapabilities.has(name));
  const secrets = namesSecrets ? await listSecrets(db, projectId) : [];
  const receivers = secrets.map(({ name, capabilities, bytes }) => [name, capabilities, bytes]);
  return {
    key: JSON.stringify([[...digests.byCall.values()], pipelines.digests, unknown, receivers]),
    specs: digests.byCapability,
    knownCapabilities,
    read: async () => ({
      knownCapabilities,
      strict: false,
      specsOf: await readSpecForms({ db, forms }, digests),
      pipelineOf: (reference) => pipelines.forms.get(reference),
      secrets: new Map(secrets.map((secret) => [secret.name, secret])),
      schemaFaultOf: await vetOwnSchemas(vetter.vet, definition),
    }),
  };
}

/** Uses memory for known names; for an unknown name, which may be new, it queries the database. */
async function findRegistered(
  { db, fleet }: Pick<CheckCtx, 'db' | 'fleet'>,
  projectId: string,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  const seen = fleet.seenBy(projectId);
  const isRegistered = (name: string): boolean =>
    seen.of(name).instances.some(({ state }) => state !== 'deregistered');
  return names.every(isRegistered) ? new Set(names) : listCapabilityNames(db, projectId);
}
