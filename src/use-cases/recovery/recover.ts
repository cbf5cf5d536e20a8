/**
 * Continues the work that a restored database holds. Postgres is the record. Temporal may be empty: missing workflows
 * are started again from the rows, under the same ids, so a repetition changes nothing. If Temporal is not empty, a run
 * that is open there is left alone. A run that has ended there and not here shows that Temporal is newer than the
 * database; it is started again only if `restartsAll` is set. The findings are printed before any change, because they
 * cannot be found again afterwards.
 *
 * `restartsAll` starts all open runs again and first deletes their histories in Temporal. Runs that had not been
 * started before are left to servers, whose start would otherwise meet an ended workflow of the same id. A deletion
 * takes Temporal a minute or two, so many are waited for together; a slow one does not delay the others.
 */
import { deleteAllSessions } from '../../db/access/session.ts';
import { loseExpiredAttempts } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import {
  compareKeys,
  type InterruptedCall,
  type KeyAct,
  type LostKeyActs,
  listInterruptedCalls,
  listOpenRuns,
  type OpenRun,
  type RestoredState,
  readRestoredState,
} from '../../db/recovery.ts';
import { forgetStart, readDelivery } from '../../db/run/run-delivery.ts';
import {
  type DeliveryCtx,
  type DeliveryKind,
  deliverSoon,
  restartForgotten,
} from '../../parts/delivery/deliveries.ts';
import { ladderStarts } from '../escalation/ladder/delivery.ts';
import { runStarts } from '../runs/delivery.ts';
import { changedSchedules } from '../schedules/delivery.ts';
import { revokeAgain } from './lost-acts.ts';

const batch = 500;

/** All runs that have not ended, in pages. */
async function* pageOpenRuns(db: Db): AsyncGenerator<readonly OpenRun[], void, undefined> {
  let after = '';
  for (;;) {
    const runs = await listOpenRuns(db, after, batch);
    const last = runs.at(-1);
    if (last === undefined) return;
    yield runs;
    after = last.run_id;
  }
}

export interface RecoverCtx extends DeliveryCtx {
  readonly registerSearchAttributes: () => Promise<readonly string[]>;
  /** Between two checks of pending deletions in Temporal. */
  readonly pause: (ms: number) => Promise<void>;
}

/** Five minutes at least. */
const looks = 300;
const pauseMs = 1_000;
/** The most ids in one request to Temporal. */
const atOnce = 16;

/** @returns the runs of which Temporal still has data */
async function eraseEach({ temporal }: RecoverCtx, runs: readonly OpenRun[]): Promise<readonly OpenRun[]> {
  const left: OpenRun[] = [];
  for (let at = 0; at < runs.length; at += atOnce) {
    const some = runs.slice(at, at + atOnce);
    const gone = await Promise.all(some.map((run) => temporal.workflows.erase(run)));
    left.push(...some.filter((_, index) => !gone[index]));
  }
  return left;
}

/** @returns the runs of which Temporal still has data after five minutes */
async function eraseWholly(ctx: RecoverCtx, runs: readonly OpenRun[]): Promise<readonly OpenRun[]> {
  let left = await eraseEach(ctx, runs);
  for (let look = 0; look < looks && left.length > 0; look++) {
    await ctx.pause(pauseMs);
    left = await eraseEach(ctx, left);
  }
  return left;
}

/** What was to be started, and was not, with the reason. */
export interface FailedStart {
  readonly id: string;
  readonly reason: string;
}

/** Counts starts that Temporal has taken, and keeps those that it has not. */
interface Restarts {
  readonly taken: number;
  readonly failed: readonly FailedStart[];
}

/** @returns the starts, and the runs that were not to be started, because Temporal still had data of them */
async function restartAllRuns(
  ctx: RecoverCtx,
): Promise<Restarts & { readonly undeleted_runs: readonly string[] }> {
  const { db } = ctx;
  const undeleted_runs: string[] = [];
  const failed: FailedStart[] = [];
  let taken = 0;
  const start = async (run_id: string): Promise<void> => {
    const fault = await deliverSoon(ctx, runStarts, { run_id });
    if (fault === null) taken += 1;
    else failed.push({ id: run_id, reason: fault.message });
  };
  for await (const runs of pageOpenRuns(db)) {
    const left = new Set(await eraseWholly(ctx, runs));
    const starts: Promise<void>[] = [];
    for (const run of runs) {
      const { run_id } = run;
      if (left.has(run)) undeleted_runs.push(run_id);
      else if (run.is_delivered && (await forgetStart(db, run_id))) starts.push(start(run_id));
    }
    await Promise.all(starts); // no more of them than the queue holds
  }
  return { taken, failed, undeleted_runs };
}

/** Restarts what Temporal does not know. */
async function restartUnknown<Item extends object, Row extends object>(
  ctx: RecoverCtx,
  delivery: DeliveryKind<Item, Row>,
  onKnown?: (row: Row, isListed: boolean) => Promise<void>,
): Promise<Restarts> {
  const failed: FailedStart[] = [];
  const tried = await restartForgotten(ctx, delivery, {
    olderThanMs: 0,
    ...(onKnown === undefined ? {} : { onKnown }),
    onFailed: (id, { message: reason }) => void failed.push({ id, reason }),
  });
  return { taken: tried - failed.length, failed };
}

/** The contents of the database, before any change. */
export interface RecoveryFindings extends Omit<RestoredState, 'last_at'> {
  /** The time of the database's last row. Later work happens again. */
  readonly last_at: string | null;
  /** Calls that were in flight at that moment, which may happen twice; the first thousand of `open_calls`. */
  readonly interrupted_calls: readonly InterruptedCall[];
  /** The changes of keys after the backup; null: unknown, because no audit log was given. */
  readonly lost_acts: LostKeyActs | null;
}

interface RunCounts {
  /** Runs that continue in Temporal. */
  readonly running_runs: number;
  /** Open here and ended in Temporal; left unchanged. */
  readonly ended_in_temporal: readonly string[];
  /** To be restarted, but not deleted by Temporal in time; left unchanged. */
  readonly undeleted_runs: readonly string[];
}

export interface RecoveryReport extends RecoveryFindings, RunCounts {
  /** Sessions and links at the time of the backup, all of which have ended. */
  readonly ended_sessions: number;
  readonly ended_login_links: number;
  /** Keys that worked again, with the keys below them. */
  readonly revoked_keys: readonly string[];
  /** Names that Temporal lacked. */
  readonly search_attributes: readonly string[];
  /** Why they could not be registered; null: no fault. */
  readonly search_attributes_fault: string | null;
  /** Restarts that Temporal has taken. */
  readonly restarted_runs: number;
  readonly restarted_ladders: number;
  readonly restored_schedules: number;
  /** Runs, ladders and schedules that were to start, and that servers try to start again. */
  readonly failed_starts: readonly FailedStart[];
}

export interface RecoverOptions<Findings = RecoveryFindings> {
  readonly restartsAll: boolean;
  /** From an audit log that was kept elsewhere. */
  readonly keyActs?: readonly KeyAct[] | undefined;
  /** Called before any change. */
  readonly onFound: (findings: Findings) => void;
}

const mostCalls = 1_000;

async function readFindings(db: Db, keyActs: readonly KeyAct[] | undefined): Promise<RecoveryFindings> {
  const { last_at, ...state } = await readRestoredState(db);
  const interrupted_calls = await listInterruptedCalls(db, mostCalls);
  const lost_acts = keyActs === undefined ? null : await compareKeys(db, keyActs);
  return { ...state, last_at: last_at?.toISOString() ?? null, interrupted_calls, lost_acts };
}

async function hasEndedInTemporal({ db, temporal }: RecoverCtx, run: OpenRun): Promise<boolean> {
  const { workflows } = temporal;
  if ((await workflows.isForgotten(run)) || (await workflows.isOpen(run))) return false;
  return (await readDelivery(db, run.run_id))?.finished_at === null; // a server may have started it meanwhile
}

/** Runs that a server would start although their workflow has ended. */
async function listEndedBeforeStart(ctx: RecoverCtx): Promise<string[]> {
  const ended: string[] = [];
  for await (const runs of pageOpenRuns(ctx.db)) {
    for (const run of runs)
      if (!run.is_delivered && (await hasEndedInTemporal(ctx, run))) ended.push(run.run_id);
  }
  return ended;
}

async function restartRuns(ctx: RecoverCtx): Promise<Restarts & RunCounts> {
  const ended_in_temporal = await listEndedBeforeStart(ctx);
  let running_runs = 0;
  const starts = await restartUnknown(ctx, runStarts, async (run, isListed) => {
    if (isListed || (await ctx.temporal.workflows.isOpen(run))) running_runs += 1;
    else ended_in_temporal.push(run.run_id);
  });
  return { ...starts, running_runs, ended_in_temporal, undeleted_runs: [] };
}

/** Temporal Cloud accepts them from its own tools only, and runs work without them. */
async function register({ registerSearchAttributes }: RecoverCtx) {
  try {
    return { search_attributes: await registerSearchAttributes(), search_attributes_fault: null };
  } catch (thrown) {
    const search_attributes_fault = thrown instanceof Error ? thrown.message : String(thrown);
    return { search_attributes: [], search_attributes_fault };
  }
}

/** Ends access that the restore has reopened: sessions and links of the backup, and keys that were revoked since. */
async function closeAccess(db: Db, { lost_acts }: RecoveryFindings) {
  const revoked_keys = lost_acts === null ? [] : await revokeAgain(db, lost_acts.revoked);
  const { sessions, login_links } = await deleteAllSessions(db);
  return { revoked_keys, ended_sessions: sessions, ended_login_links: login_links };
}

/** May be repeated, also beside servers and workers; each time, all users have to sign in again. */
export async function recover(
  ctx: RecoverCtx,
  { restartsAll, keyActs, onFound }: RecoverOptions,
): Promise<RecoveryReport> {
  const { db } = ctx;
  const findings = await readFindings(db, keyActs);
  onFound(findings);
  const closed = await closeAccess(db, findings);
  const registered = await register(ctx);
  while ((await loseExpiredAttempts(db)) > 0);
  const { taken, failed, ...runs } = restartsAll
    ? { running_runs: 0, ended_in_temporal: [], ...(await restartAllRuns(ctx)) }
    : await restartRuns(ctx);
  const ladders = await restartUnknown(ctx, ladderStarts);
  const schedules = await restartUnknown(ctx, changedSchedules);
  return {
    ...findings,
    ...closed,
    ...registered,
    ...runs,
    restarted_runs: taken,
    restarted_ladders: ladders.taken,
    restored_schedules: schedules.taken,
    failed_starts: [...failed, ...ladders.failed, ...schedules.failed],
  };
}
