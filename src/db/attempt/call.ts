/** Calls of a project as people look for them: by their payer, their use and their end. */
import type { CallOutcome, CallTokens } from '@capstan/core/contracts/call';
import type { Failure } from '@capstan/core/contracts/primitives';
import type { AttemptState, CachedFrom } from '@capstan/core/contracts/run-step';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';
import { hasContent } from './call-content.ts';

export interface CallRow {
  readonly attempt_id: string;
  readonly capability: string;
  readonly endpoint: string;
  readonly state: AttemptState;
  readonly error: Pick<Failure, 'code' | 'message'> | null;
  readonly started_at: Date;
  readonly duration_ms: number | null;
  /** bigint as text; null while the attempt is open */
  readonly settled_nano: string | null;
  readonly certainty: 'exact' | 'estimated' | null;
  readonly model: string | null;
  readonly tokens: CallTokens | null;
  /** `key:ID`, `user:anna`, `label:team=ads`, `pipeline:reel` */
  readonly scopes: readonly string[] | null;
  readonly run_id: string | null;
  readonly step_id: string | null;
  readonly item: number | null;
}

export interface CallDetailRow extends CallRow {
  readonly number: number;
  /** bigint as text */
  readonly reserved_nano: string;
  readonly grown_nano: string;
  readonly saved_nano: string;
  readonly pieces: number;
  readonly cached_from: CachedFrom | null;
  readonly has_content: boolean;
}

export interface CallFilter {
  readonly capability?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly model?: string | undefined;
  readonly run_id?: string | undefined;
  readonly direct?: boolean | undefined;
  readonly outcome?: CallOutcome | undefined;
  /** All of them belong to the call. */
  readonly scopes: readonly string[];
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** Bounds of attempt ids in the time span; undefined: any time. */
  readonly ids?: readonly [from: string, to: string] | undefined;
  /** The last attempt of the page before. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** Every attempt is one of the two. In these words the conditions are those of the indexes of lists, and of held slots. */
export const indexed = {
  ended: 'finished_at is not null',
  open: `finished_at is null and state in ('reserved', 'dispatched')`,
} as const;

/** The collation of the indexes that serve this order, which the primary key lacks. */
const id = 'a.attempt_id collate "C"';

const columns = `a.attempt_id, a.capability, a.endpoint, a.state,
  case when a.error is not null then jsonb_build_object('code', a.error -> 'code', 'message', a.error -> 'message') end as error,
  a.started_at, a.duration_ms, a.settled_nano, a.certainty, a.model, a.tokens, a.scopes, a.run_id, a.step_id, a.item`;

/** As `outcomeOf` (core/call/call-facts.ts) names the ends of attempts. */
const ended: Readonly<Record<CallOutcome, string>> = {
  running: `a.state in ('reserved', 'dispatched')`,
  cached: `a.state = 'cached'`,
  succeeded: `a.state not in ('reserved', 'dispatched', 'cached') and a.error is null`,
  cancelled: `a.error is not null and a.error ->> 'code' = 'run_cancelled'`,
  failed: `a.error is not null and a.error ->> 'code' is distinct from 'run_cancelled'`,
};

/** @returns the conditions of a list, and their values */
function conditionsOf(projectId: string, filter: CallFilter) {
  const { capability, endpoint, model, run_id, direct, outcome, scopes, since, until, ids, after } = filter;
  const conditions = [
    'a.project_id = :projectId',
    capability !== undefined && 'a.capability = :capability',
    endpoint !== undefined && 'a.endpoint = :endpoint',
    model !== undefined && 'a.model = :model',
    run_id !== undefined && 'a.run_id = :run_id',
    direct !== undefined && `a.run_id is ${direct ? '' : 'not '}null`,
    outcome !== undefined && ended[outcome],
    scopes.length > 0 && 'a.scopes @> cast(:scopes as text[])',
    since !== undefined && 'a.started_at >= :since',
    until !== undefined && 'a.started_at < :until',
    ids !== undefined && `${id} >= :from and ${id} < :to`,
    after !== undefined && `${id} < :after`,
  ].filter((condition) => condition !== false);
  const values = { capability, endpoint, model, run_id, since, until, after };
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  const bindings = {
    projectId,
    ...Object.fromEntries(given),
    ...(scopes.length > 0 ? { scopes: [...scopes] } : {}),
    ...(ids === undefined ? {} : { from: ids[0], to: ids[1] }),
  };
  return { where: conditions.join(' and '), bindings };
}

/**
 * Newest first. Ids begin with the time, so a range of ids selects a time span. Ended calls and open ones, which are
 * few, are read by indexes of their own.
 */
export function listCalls(db: Db, projectId: string, filter: CallFilter): Promise<readonly CallRow[]> {
  const { where, bindings } = conditionsOf(projectId, filter);
  const { outcome } = filter;
  const page = `order by ${id} desc limit :limit`;
  const parts = [
    outcome !== 'running' && indexed.ended,
    (outcome ?? 'running') === 'running' && indexed.open,
  ].filter((part) => part !== false);
  const lists = parts.map((part) => `(select ${columns} from attempt a where ${part} and ${where} ${page})`);
  return query<CallRow>(db).all(`select * from (${lists.join(' union all ')}) a ${page}`, {
    ...bindings,
    limit: filter.limit,
  });
}

export function findCall(db: Db, project_id: string, attempt_id: string): Promise<CallDetailRow | undefined> {
  return query<CallDetailRow>(db).first(
    `select ${columns}, a.number, a.reserved_nano, a.grown_nano, coalesce(a.saved_nano, 0) as saved_nano, a.pieces,
       a.cached_from, ${hasContent}
     from attempt a where a.attempt_id = ? and a.project_id = ?`,
    [attempt_id, project_id],
  );
}
