/** Lists capabilities, their instances and their calls, and shows one capability. */
import { LRUCache } from 'lru-cache';
import type {
  CallsSummary,
  CallsSummaryQuery,
  CapabilityDetail,
  CapabilitySummary,
  InstanceState,
  NotEnforced,
} from '../../contracts/capability.ts';
import { listNotEnforced } from '../../core/schema-types/not-enforced.ts';
import { summariseCalls } from '../../db/attempt/call-summary.ts';
import { type CapabilitySpecRow, listDescriptions, listSpecs } from '../../db/instance/capability-spec.ts';
import type { InstanceRow } from '../../db/instance/instance.ts';
import {
  type ListedInstance,
  listInstancePage,
  listInstancesByName,
} from '../../db/instance/instance-list.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Ctx, ServerCtx } from '../context.ts';
import { decodeCursor, toPage } from '../cursor.ts';
import { boundsOfIds } from '../ids.ts';
import { toInstance } from './instance-view.ts';

interface ListRequest {
  readonly tag?: string | undefined;
  /** Absent: all but the evicted and the deregistered. */
  readonly state?: InstanceState | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** Versions in the order of their first listed registration. */
function versionsOf(rows: readonly InstanceRow[]): string[] {
  return [...new Set(rows.map(({ version }) => version))];
}

export async function listCapabilities(
  { db }: Pick<Ctx, 'db'>,
  { tag, state, limit, cursor }: ListRequest,
): Promise<{ items: CapabilitySummary[]; next_cursor: string | null }> {
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listInstancePage(db, {
    tag: tag ?? null,
    state: state ?? null,
    after,
    limit: limit + 1,
  });
  const groups = new Map<string, ListedInstance[]>();
  for (const row of rows) groups.set(row.name, [...(groups.get(row.name) ?? []), row]);
  const descriptions = await listDescriptions(db, [...groups.keys()]);
  return toPage([...groups.entries()], limit, {
    key: ([name]) => name,
    item: ([name, instances]) => ({
      name,
      versions: versionsOf(instances),
      description: descriptions.get(name) ?? null,
      instances: instances.map(toInstance),
    }),
  });
}

/** @throws AppError `not_found` when the name was never registered */
export async function getCapability({ db }: Pick<Ctx, 'db'>, name: string): Promise<CapabilityDetail> {
  const [instances, specs] = await Promise.all([listInstancesByName(db, name), listSpecs(db, name)]);
  if (instances.length === 0) throw new AppError('not_found', `no instance of ${name} is registered`);
  return {
    name,
    specs: specs.map(toListedSpec),
    instances: instances.map(toInstance),
  };
}

/** By digest: finding them compiles every pattern, and the spec of a digest never changes. */
const knownGaps = new LRUCache<string, readonly NotEnforced[]>({ max: 1_000 });

function toListedSpec({ digest, spec }: CapabilitySpecRow): CapabilityDetail['specs'][number] {
  const gaps =
    knownGaps.get(digest) ??
    (['input', 'output'] as const).flatMap((schema) =>
      listNotEnforced(spec[schema]).map((gap) => ({ schema, ...gap })),
    );
  knownGaps.set(digest, gaps);
  return { digest, spec, ...(gaps.length === 0 ? {} : { not_enforced: [...gaps] }) };
}

const dayMs = 86_400_000;

/** The outcomes of the project's calls, by capability. */
export async function readCallsSummary(
  { historyDb }: Pick<ServerCtx, 'historyDb'>,
  projectId: string,
  query: CallsSummaryQuery,
): Promise<CallsSummary> {
  const until = new Date(query.until ?? Date.now());
  const since = new Date(query.since ?? until.getTime() - dayMs);
  const ids = boundsOfIds('attempt', since, until);
  return { items: [...(await summariseCalls(historyDb, projectId, { since, until, ids }))] };
}
