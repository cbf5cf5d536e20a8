/**
 * Invariants that hold after every scenario (router.md §4), checked on the rows, on the instances' journals, and on the
 * decisions made again. commit-watch.ts checks those that hold at every commit.
 */
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { replayChoice } from '@capstan/core/routing/replay';
import type { Db } from '../../src/db/connect.ts';
import { toOpaqueKey } from '../../src/use-cases/routing/call.ts';
import { listBreaches } from './commit-watch.ts';
import { type JournalFleet, mostAtOnce } from './journal-fleet.ts';
import { waitFor } from './wait.ts';

/** Instances with a journal of their calls. */
export interface Journaled extends Pick<JournalFleet, 'instances' | 'journal'> {
  /**
   * A capability of this fleet only, because a port may have been another's before. Default: its instances have all
   * calls.
   */
  readonly capability?: string;
  /** A router that called it was killed, and lost its last records of calls on leased slots. */
  readonly losesRecords?: boolean;
}

async function list(db: Db, sql: string): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { what: string }[] }>(`${sql} limit 20`);
  return rows.map(({ what }) => what);
}

/** Every budget matches the reservations and costs of its attempts. One statement, so it holds at any time. */
const driftingBudgets = `
  with recursive line as (
    select run_id as below, run_id, parent_run_id from run
    union all
    select l.below, r.run_id, r.parent_run_id from line l join run r on r.run_id = l.parent_run_id
  ), charged as (
    select s.scope, s.window_start, sum(coalesce(a.settled_nano, 0)) as spent,
      sum(case when a.state in ('reserved', 'dispatched') then a.reserved_nano + a.risk_nano else 0 end) as reserved
    from attempt a cross join lateral (values
      ('global', (a.started_at at time zone 'UTC')::date),
      ('project:' || a.project_id, a.budget_window),
      ('capability:' || a.project_id || ':' || a.capability, a.budget_window)
      union all
      select 'budget:' || a.project_id || ':' || name,
        case when name like 'total:%' then '-infinity'
          else date_trunc(split_part(name, ':', 1), a.budget_window::timestamp)::date end from unnest(a.budgets) name
      union all
      select 'run:' || l.run_id, '-infinity'::date from line l where l.below = a.run_id) s (scope, window_start)
    where a.reserved_nano > 0 group by 1, 2)
  select format('budget %s: spent %s and reserved %s, its attempts %s and %s', scope, b.spent_nano, b.reserved_nano,
    c.spent, c.reserved) as what
  from budget b full join charged c using (scope, window_start)
  where coalesce(b.spent_nano, 0) <> coalesce(c.spent, 0) or coalesce(b.reserved_nano, 0) <> coalesce(c.reserved, 0)`;

/** One reservation each, one settlement each; together they equal the attempt's cost. */
const wrongEntries = `
  select format('attempt %s (%s): reserved %s, settled %s; ledger: %s reservations of %s, %s ends, %s adjustments, booked %s',
    a.attempt_id, a.state, a.reserved_nano, a.settled_nano, l.reserves, l.held, l.ends, l.adjusts, l.booked) as what
  from attempt a cross join lateral (
    select count(*) filter (where kind = 'reserve') as reserves, count(*) filter (where kind = 'adjust') as adjusts,
      count(*) filter (where kind in ('settle', 'release')) as ends,
      coalesce(sum(amount_nano) filter (where kind = 'reserve'), 0) as held,
      coalesce(sum(amount_nano) filter (where kind <> 'reserve'), 0) as booked
    from ledger_entry l where l.attempt_id = a.attempt_id) l
  where l.reserves <> (a.reserved_nano > 0)::int or l.held <> a.reserved_nano - a.grown_nano or l.adjusts > 1
    or l.ends <> (a.reserved_nano > 0 and a.state not in ('reserved', 'dispatched'))::int
    or l.booked <> coalesce(a.settled_nano, 0)
    or a.settled_nano > a.reserved_nano and (a.settled_nano > ceil(a.rate_usd * 1000000000) or not exists (
      select from attempt_choice c where c.attempt_id = a.attempt_id and c.inputs::jsonb #> '{request,bounds}' <> '[]'))`;

/** Budgets and ledger entries that differ from the attempts that moved them. */
export async function listMoneyBreaches(db: Db): Promise<string[]> {
  return [...(await list(db, driftingBudgets)), ...(await list(db, wrongEntries))];
}

/** A lease ended more than 5 s ago, and the attempt is still open. */
const leftOpen = `
  select format('attempt %s is %s %s after its lease', attempt_id, state, clock_timestamp() - lease_until) as what
  from attempt where state in ('reserved', 'dispatched') and lease_until < clock_timestamp() - interval '6 seconds'`;

/** Two concurrent trials of one half-open instance. */
const crowdedTrials = `
  with attempted as (
    select a.attempt_id, a.instance_id, t.begun_at, coalesce(least(a.finished_at, a.lease_until), a.lease_until) as ended_at
    from trial t join attempt a using (attempt_id))
  select format('%s and %s are trials of one instance at once', a.attempt_id, b.attempt_id) as what
  from attempted a join attempted b on a.instance_id = b.instance_id and a.attempt_id < b.attempt_id
    and a.begun_at < b.ended_at and b.begun_at < a.ended_at`;

/** Decisions whose inputs now yield another choice. */
async function findChangedDecisions(db: Db): Promise<string[]> {
  const changed: string[] = [];
  for (let after = ''; ; ) {
    const rows: { attempt_id: string; endpoint: string; inputs: JsonObject }[] = await db('attempt')
      .join('attempt_choice', 'attempt_choice.attempt_id', 'attempt.attempt_id')
      .where('attempt.attempt_id', '>', after)
      .whereNotNull('inputs') // a cached result has no choice
      .orderBy('attempt.attempt_id')
      .limit(1_000)
      .select('attempt.attempt_id', 'endpoint', 'inputs');
    for (const { attempt_id, endpoint, inputs } of rows) {
      const again = replayChoice(inputs);
      if (again !== endpoint) changed.push(`attempt ${attempt_id} chose ${endpoint}, made again ${again}`);
      after = attempt_id;
    }
    if (rows.length < 1_000) return changed;
  }
}

interface Sent {
  readonly key: string;
  readonly number: number;
  readonly endpoint: string;
  readonly answered: boolean;
}

async function listSent(db: Db, { instances, capability }: Journaled): Promise<Sent[]> {
  const endpoints = instances.map(({ endpoint }) => endpoint);
  const query = db('attempt').whereIn('endpoint', endpoints);
  if (capability !== undefined) query.where({ capability });
  const answered = db.raw("coalesce(ambiguity = 'answered', false) as answered");
  return query.select('key', 'number', 'endpoint', answered);
}

function nameOf({ endpoint, key, number }: Omit<Sent, 'answered'>): string {
  return `${endpoint} ${key} ${number}`;
}

/** By call, whether it settled as answered. */
async function readClaims(db: Db, fleets: readonly Journaled[]): Promise<ReadonlyMap<string, boolean>> {
  const sent = (await Promise.all(fleets.map((fleet) => listSent(db, fleet)))).flat();
  return new Map(
    sent.map(({ answered, key, ...rest }) => [nameOf({ ...rest, key: toOpaqueKey(key) }), answered]),
  );
}

/** Calls on leased slots are recorded soon after their answers, so a missing one is looked for until it appears. */
async function readAllClaims(db: Db, fleets: readonly Journaled[]): Promise<ReadonlyMap<string, boolean>> {
  const calls: string[] = [];
  for (const fleet of fleets) {
    if (fleet.losesRecords === true) continue;
    const endpoints = new Map(fleet.instances.map(({ port, endpoint }) => [port, endpoint]));
    for (const { kind, port, key = '', number = 0 } of await fleet.journal()) {
      const endpoint = endpoints.get(port);
      if (kind === 'begin' && endpoint !== undefined) calls.push(nameOf({ endpoint, key, number }));
    }
  }
  const areThere = async () => {
    const claims = await readClaims(db, fleets);
    return calls.every((name) => claims.has(name)) ? claims : undefined;
  };
  return waitFor('the records of all calls', areThere, 30_000).catch(() => readClaims(db, fleets));
}

/** Every call at an instance has a claim of its own, and every attempt that settled as answered has a call. */
async function findUnclaimedCalls(db: Db, fleets: readonly Journaled[]): Promise<string[]> {
  const found: string[] = [];
  const claims = await readAllClaims(db, fleets);
  const begun = new Set<string>();
  for (const fleet of fleets) {
    const journal = await fleet.journal();
    const endpoints = new Map(fleet.instances.map(({ port, endpoint }) => [port, endpoint]));
    for (const { port, max_concurrency } of fleet.instances) {
      const most = mostAtOnce(journal, port);
      if (most > max_concurrency) found.push(`port ${port} worked on ${most} of ${max_concurrency} at once`);
    }
    for (const { kind, port, key = '', number = 0 } of journal) {
      if (kind !== 'begin') continue;
      const name = nameOf({ endpoint: endpoints.get(port) ?? `port ${port}`, key, number });
      if (!claims.has(name) && fleet.losesRecords !== true) found.push(`${name} was sent without a claim`);
      if (begun.has(name)) found.push(`${name} was sent twice`);
      begun.add(name);
    }
  }
  for (const [name, answered] of claims) {
    if (answered && !begun.has(name)) found.push(`${name} settled as answered and was never sent`);
  }
  return found;
}

/** Sums that hold at any time, also during calls. */
export function findDrift(db: Db): Promise<string[]> {
  return list(db, driftingBudgets);
}

/** @param fleets every instance that was called @returns one line per violation; empty when there is none */
export async function findViolations(db: Db, fleets: readonly Journaled[]): Promise<string[]> {
  const found = [
    await listBreaches(db),
    await findDrift(db),
    await list(db, wrongEntries),
    await list(db, leftOpen),
    await list(db, crowdedTrials),
    await findChangedDecisions(db),
    await findUnclaimedCalls(db, fleets),
  ];
  return found.flat();
}
