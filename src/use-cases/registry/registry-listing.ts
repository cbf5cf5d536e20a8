/** Lists capabilities, their instances and their calls, and shows one capability. */

import type {
  CallsSummary,
  CallsSummaryQuery,
  CapabilityDetail,
  CapabilitySummary,
  InstanceState,
  NotEnforced,
} from '@capstan/core/contracts/capability';
import type { CallsHealth, HealthQuery } from '@capstan/core/contracts/health';
import { AppError } from '@capstan/core/errors/app-error';
import { sumResults } from '@capstan/core/fleet/last-results';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import { listNotEnforced } from '@capstan/core/schema-types/not-enforced';
import { LRUCache } from 'lru-cache';
import type { Ctx, ServerCtx } from '../../context.ts';
import { type LastCallRow, listLastCalls, summariseCalls } from '../../db/attempt/call-summary.ts';
import type { NameInProject } from '../../db/instance/capability-name.ts';
import { type CapabilitySpecRow, listBestSpecs, listSpecs } from '../../db/instance/capability-spec.ts';
import type { InstanceRow } from '../../db/instance/instance.ts';
import {
  type ListedInstance,
  listInstancePage,
  listInstancesByName,
} from '../../db/instance/instance-list.ts';
import type { KeyHolder } from '../../parts/access/verified-keys.ts';
import { boundsOfIds } from '../../parts/ids.ts';
import { type Caller, requireScope } from '../access/caller.ts';
import { decodeCursor, toPage } from '../cursor.ts';
import { toInstance } from './instance-view.ts';

interface ListRequest {
  /** Absent: of the caller's project. */
  readonly projects?: 'all' | undefined;
  readonly tag?: string | undefined;
  /** Absent: all but the evicted and the deregistered. */
  readonly state?: InstanceState | undefined;
  /** Absent: of specs, only their descriptions. */
  readonly include?: 'spec' | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** Versions in the order of their first listed registration. */
function versionsOf(rows: readonly InstanceRow[]): string[] {
  return [...new Set(rows.map(({ version }) => version))];
}

/** Those that serve the caller's project; an operator may see those of all. @throws AppError `forbidden` */
export async function listCapabilities(
  { db }: Pick<Ctx, 'db'>,
  caller: KeyHolder & Pick<Caller, 'project_id'>,
  { projects, tag, state, include, limit, cursor }: ListRequest,
): Promise<{ items: CapabilitySummary[]; next_cursor: string | null }> {
  const { project_id } = caller;
  if (projects === 'all') requireScope(caller, 'operator');
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listInstancePage(db, {
    projectId: projects === 'all' ? null : project_id,
    tag: tag ?? null,
    state: state ?? null,
    after,
    limit: limit + 1,
  });
  const groups = new Map<string, ListedInstance[]>();
  for (const row of rows) groups.set(row.name, [...(groups.get(row.name) ?? []), row]);
  const named = { projectId: project_id, names: [...groups.keys()] };
  const specs = await listBestSpecs(db, named, include === 'spec');
  const show = (row: ListedInstance) => toInstance(row, projects === 'all' ? row.owner_project : project_id);
  return toPage([...groups.entries()], limit, {
    key: ([name]) => name,
    item: ([name, instances]) => {
      const { description = null, spec } = specs.get(name) ?? {};
      const shown = instances.map(show);
      return {
        name,
        versions: versionsOf(instances),
        description,
        spec: spec ?? undefined,
        instances: shown,
      };
    },
  });
}

/** @throws AppError `not_found` when no instance of the name has ever served the project */
export async function getCapability(
  { db }: Pick<Ctx, 'db'>,
  wanted: NameInProject,
): Promise<CapabilityDetail> {
  const { name, projectId } = wanted;
  const [instances, specs] = await Promise.all([listInstancesByName(db, wanted), listSpecs(db, wanted)]);
  if (instances.length === 0) throw new AppError('not_found', `no instance of ${name} is registered`);
  return {
    name,
    specs: specs.map(toListedSpec),
    instances: instances.map((row) => toInstance(row, projectId)),
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

/** Older calls do not show how an instance is. */
const healthMs = 30 * dayMs;

/** How the last calls of each instance have ended; instances without a call are absent. */
export async function readCallsHealth(
  { historyDb }: Pick<ServerCtx, 'historyDb'>,
  projectId: string,
  { last }: HealthQuery,
): Promise<CallsHealth> {
  const [from] = boundsOfIds('attempt', new Date(Date.now() - healthMs), new Date());
  const byInstance = new Map<string, LastCallRow[]>();
  for (const row of await listLastCalls(historyDb, projectId, { from, last })) {
    const key = `${row.name} ${row.endpoint}`;
    byInstance.set(key, [...(byInstance.get(key) ?? []), row]);
  }
  return { items: [...byInstance.values()].flatMap(toCallsHealth) };
}

function toCallsHealth(calls: readonly LastCallRow[]): CallsHealth['items'] {
  const [first] = calls;
  if (first === undefined) return [];
  const results = calls.map(({ is_good, duration_ms, cost_nano }) => ({
    isGood: is_good,
    durationMs: duration_ms,
    costUsd: fromNanoUsd(BigInt(cost_nano)),
  }));
  const last = calls.map(({ at, is_good, error }) => ({
    at: at.toISOString(),
    succeeded: is_good,
    ...(error === null ? {} : { error }),
  }));
  return [{ name: first.name, endpoint: first.endpoint, last, ...sumResults(results) }];
}
