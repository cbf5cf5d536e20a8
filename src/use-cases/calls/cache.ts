/**
 * Shows and removes cached results, and predicts cache hits for plans. Files belong to jobs and stay.
 */
import type { CachedOfCapability, CacheEntry, CacheQuery, CacheRemoval } from '@capstan/core/contracts/cache';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { resolveCache } from '@capstan/core/definition/step-settings';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import { removeCachedAnswers } from '../../db/attempt/cached-answer.ts';
import {
  type CachedOfCapabilityRow,
  type CachedResultRow,
  type ListedResultRow,
  listResults,
  type ResultPlace,
  readResult,
  removeResults,
  summarizeCache,
} from '../../db/attempt/cached-result.ts';
import type { Db } from '../../db/connect.ts';
import { type CallKeyParts, type CallToKey, digestOf, keyCall } from '../../parts/cache/call-key.ts';
import type { Caller } from '../access/caller.ts';
import { decodeCursor, refuseCursor, toPage } from '../cursor.ts';

const place = /^([0-9T :.+-]{10,40}) ([0-9a-f]{64})$/;

function readPlace(cursor: string): ResultPlace {
  const [, at, key] = place.exec(decodeCursor(cursor)) ?? [];
  if (at === undefined || key === undefined || Number.isNaN(Date.parse(at))) throw refuseCursor();
  return { place: at, key };
}

function toEntry({ item, cost_nano, place: _, ...row }: ListedResultRow): CacheEntry {
  return {
    ...row,
    ...(item === 0 ? {} : { item }),
    cost_usd: fromNanoUsd(BigInt(cost_nano)),
    stored_at: row.stored_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
  };
}

/** Newest first. @throws AppError `request_invalid` for a cursor of another list */
export async function listCachedResults(
  { db }: { readonly db: Db },
  { project_id }: Caller,
  { limit, cursor, ...which }: CacheQuery,
): Promise<{ items: CacheEntry[]; next_cursor: string | null }> {
  const after = cursor === undefined ? null : readPlace(cursor);
  const rows = await listResults(db, project_id, { ...which, after, limit: limit + 1 });
  return toPage(rows, limit, { key: (row) => `${row.place} ${row.key}`, item: toEntry });
}

function toSummarized({ stored_at, saved_nano, ...row }: CachedOfCapabilityRow): CachedOfCapability {
  return {
    ...row,
    answer_bytes: Number(row.answer_bytes),
    saved_usd: fromNanoUsd(BigInt(saved_nano)),
    ...(stored_at === null ? {} : { stored_at: stored_at.toISOString() }),
  };
}

/** By capability, with the hits of the last 30 days. */
export async function readCacheSummary(
  { db }: { readonly db: Db },
  { project_id }: Caller,
): Promise<{ items: CachedOfCapability[] }> {
  const rows = await summarizeCache(db, project_id);
  return { items: rows.map(toSummarized) };
}

export async function removeCachedResults(
  { db }: { readonly db: Db },
  { project_id }: Caller,
  which: CacheRemoval,
): Promise<{ removed: number }> {
  const { pipeline, run_id } = which;
  const isOfSteps = pipeline !== undefined || run_id !== undefined;
  const answers = isOfSteps ? 0 : await removeCachedAnswers(db, project_id, which);
  return { removed: answers + (await removeResults(db, project_id, which)) };
}

interface PlannedStepCall extends Omit<CallToKey, 'policy'> {
  readonly definition: PipelineDefinition;
}

/** The result of a step that has succeeded, or of an equal call in the plan, which is made once. */
type KeptFor = Pick<CachedResultRow, 'run_id' | 'step_id'> | 'equal_call';

/** Null = the call is made. */
export type FindKept = (call: PlannedStepCall) => Promise<KeptFor | null>;

/** Lookups of one plan, which takes no longer than a request may. */
const mostLookups = 1_000;

/** For a plan: the source of the result that a call would take. Nothing is executed, waited for or copied. */
export function createFindKept(ctx: CallKeyParts): FindKept {
  const known = new Map<string, KeptFor>();
  return async ({ definition, ...call }) => {
    const policy = resolveCache(definition, call.step);
    if (policy === null) return null;
    const keyed = await keyCall(ctx, { ...call, policy });
    if (keyed === null) return null;
    const keys = [...keyed.keys.values()];
    const name = `${keys.join()} ${policy.ttlMs}`;
    const before = known.get(name);
    if (before !== undefined || known.size >= mostLookups) return before ?? null;
    const result = await readResult(ctx.db, { project_id: call.projectId, keys, ttl_ms: policy.ttlMs });
    const found = result !== undefined && (await isWhole(ctx, result)) ? result : null;
    known.set(name, found ?? 'equal_call');
    return found;
  };
}

async function isWhole(ctx: CallKeyParts, { files }: CachedResultRow): Promise<boolean> {
  for (const [reference, sha256] of Object.entries(files)) {
    if ((await digestOf(ctx, reference)) !== sha256) return false;
  }
  return true;
}
