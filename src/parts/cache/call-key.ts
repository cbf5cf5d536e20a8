/** The keys of a call whose result may be cached: one for each spec that may answer it. */
import { createHash } from 'node:crypto';
import {
  type CacheScope,
  cacheKeyText,
  findMediaPlaces,
  type KeyedSpec,
  type MediaPlaces,
  scopeOf,
} from '@capstan/core/cache';
import { parseMediaReference } from '@capstan/core/contracts/media';
import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { ResolvedCache } from '@capstan/core/definition/step-settings';
import type { Logger } from 'pino';
import type { Db } from '../../db/connect.ts';
import type { StepResults } from '../definitions/step-results.ts';
import type { FleetPoller } from '../fleet/fleet-poller.ts';
import { listPresentSpecs, type SchemaValidator, type SpecTarget, specTargetOf } from '../fleet/specs.ts';
import type { MediaLibrary } from '../media/media-library.ts';
import type { OwnMedia } from '../media/own-media.ts';

/** The parts of the context that find and store cached results. */
export interface CacheParts {
  readonly db: Db;
  readonly logger: Logger;
  readonly fleet: Pick<FleetPoller, 'seenBy'>;
  readonly validator: SchemaValidator;
  readonly media: Pick<MediaLibrary, 'head' | 'copy'>;
  readonly ownMedia: Pick<OwnMedia, 'findForeign'>;
  readonly results: Pick<StepResults, 'remember'>;
}

/** The parts that a key is made from. */
export type CallKeyParts = Omit<CacheParts, 'logger' | 'results'>;

export interface CallToKey {
  readonly projectId: string;
  readonly run: RunOfCall;
  readonly step: StepDefinition;
  readonly input: JsonObject;
  readonly secrets?: readonly string[] | undefined;
  readonly policy: ResolvedCache;
}

export interface RunOfCall {
  readonly run_id: string;
  /** Belongs to the project. */
  readonly job_id: string;
  readonly pipeline: string;
}

export interface CallKeys {
  /** By the digest of the spec; the newest version first, at least one. */
  readonly keys: ReadonlyMap<string, string>;
  readonly places: MediaPlaces;
  /** SHA-256 of each file that is read, by its reference. */
  readonly digests: ReadonlyMap<string, string>;
}

/** Versions in service at the same time; more would slow down every lookup. */
const mostSpecs = 8;

interface InputToKey {
  readonly projectId: string;
  /** A job that is known to be the project's. */
  readonly jobId?: string;
  readonly scope: CacheScope;
  readonly target: SpecTarget;
  readonly input: JsonObject;
  readonly secrets?: readonly string[] | undefined;
  /** Also keys the specs that do not call themselves deterministic. */
  readonly insists: boolean;
}

/** @returns null when the call cannot use the cache, because of its input, its capability or its files */
export async function keyInput(ctx: CallKeyParts, call: InputToKey): Promise<CallKeys | null> {
  const { projectId, jobId, scope, target, input, secrets, insists } = call;
  const { capability, tags } = target;
  const specs = await listKeyedSpecs(ctx, target, { projectId, insists });
  const places = specs.length === 0 ? null : findMediaPlaces(input);
  if (places === null || (await ctx.ownMedia.findForeign(projectId, input, jobId)) !== null) return null;
  const digests = await readDigests(ctx, Object.values(places.sources));
  if (digests === null) return null;
  const keyed = { projectId, scope, capability, tags, input, secrets, places, digests };
  const keys = specs.map((spec) => [spec.digest, sha256(cacheKeyText(keyed, spec))] as const);
  return { keys: new Map(keys), places, digests };
}

/** The keys of a step's call. */
export function keyCall(
  ctx: CallKeyParts,
  { projectId, run, step, input, secrets, policy }: CallToKey,
): Promise<CallKeys | null> {
  const { insists } = policy;
  const [scope, target] = [scopeOf(policy, run), specTargetOf(step)];
  return keyInput(ctx, { projectId, jobId: run.job_id, scope, target, input, secrets, insists });
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

async function listKeyedSpecs(
  ctx: CallKeyParts,
  target: SpecTarget,
  { projectId, insists }: Pick<InputToKey, 'projectId' | 'insists'>,
): Promise<readonly KeyedSpec[]> {
  const { specs } = await listPresentSpecs(ctx, projectId, target);
  const sorted = [...specs].sort((a, b) => compare(b.version, a.version) || compare(a.digest, b.digest));
  const keyed: KeyedSpec[] = [];
  for (const spec of sorted.slice(0, mostSpecs)) {
    if (insists || (await ctx.validator.of(spec.digest)).spec.deterministic === true) keyed.push(spec);
  }
  return keyed;
}

function compare(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

/** Null when a file is missing. */
async function readDigests(
  ctx: Pick<CallKeyParts, 'media'>,
  references: readonly string[],
): Promise<ReadonlyMap<string, string> | null> {
  const digests = new Map<string, string>();
  for (const reference of new Set(references)) {
    const digest = await digestOf(ctx, reference);
    if (digest === null) return null;
    digests.set(reference, digest);
  }
  return digests;
}

/** Returns the current digest of a file; null when there is none. */
export async function digestOf(
  { media }: Pick<CallKeyParts, 'media'>,
  reference: string,
): Promise<string | null> {
  const path = parseMediaReference(reference);
  const object = path === null ? null : await media.head(path);
  return object?.sha256 ?? null;
}
