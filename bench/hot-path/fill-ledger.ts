/**
 * Money of many days: paid attempts, with two ledger entries each where they are asked for, spread evenly over the days,
 * twenty capabilities and five projects, of which the one that is measured has six tenths; and the budgets that belong to
 * them. References are not checked while they are written.
 */
import pg from 'pg';

export interface Filling {
  readonly databaseUrl: string;
  readonly projectId: string;
  readonly attempts: number;
  /** Until now. */
  readonly days: number;
  readonly hasLedger: boolean;
}

const chunk = 250_000;

const attempts = `
insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token, lease_until,
  cost_type, rate_usd, reserved_nano, settled_nano, certainty, ambiguity, duration_ms, started_at,
  finished_at, budget_window)
select 'att_' || lpad(n::text, 12, '0'), case when n / 20 % 10 < 6 then $1 else 'prj_' || n / 20 % 10 end,
  'call_' || lpad(n::text, 12, '0'), 1, 'capability-' || n % 20, 'ins_bench', 'http://10.0.0.1:8100', 'settled',
  lpad(to_hex(n), 32, '0')::uuid, t.at, 'per_call', 0.002, 2000000, 1000000 + n % 1000000, 'exact', 'answered', 40,
  t.at, t.at, (t.at at time zone 'UTC')::date
from generate_series($2::int, $3::int) n
cross join lateral (select now() - (1 - n::float8 / $4::int) * interval '1 day' * $5::int as at) t`;

const entries = `
insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window, at)
select a.attempt_id, k.kind, a.project_id, a.capability, k.nano, 'exact', a.budget_window, a.started_at
from attempt a cross join lateral (values ('reserve', a.reserved_nano), ('settle', a.settled_nano)) k (kind, nano)
where a.attempt_id between 'att_' || lpad($1::int::text, 12, '0') and 'att_' || lpad($2::int::text, 12, '0')
order by a.attempt_id, k.kind`;

const budgets = `
insert into budget (scope, window_start, spent_nano)
select s.scope, s.window_start, sum(a.settled_nano) from attempt a
cross join lateral budget_scopes(a.project_id, a.capability, a.run_id, a.budget_window,
  (a.started_at at time zone 'UTC')::date) s group by 1, 2 order by s.window_start`;

const projects = `insert into project (project_id, name) select 'prj_' || n, 'bench' from generate_series(6, 9) n`;

/** @param onProgress receives the share that is done */
export async function fillLedger(
  { databaseUrl, projectId, attempts: total, days, hasLedger }: Filling,
  onProgress: (share: number) => void,
): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on('error', () => undefined); // the running statement reports it
  await client.connect();
  try {
    await client.query(projects);
    await client.query('set session_replication_role = replica');
    await client.query('set synchronous_commit = off');
    for (let first = 1; first <= total; first += chunk) {
      const last = Math.min(total, first + chunk - 1);
      await client.query(attempts, [projectId, first, last, total, days]);
      if (hasLedger) await client.query(entries, [first, last]);
      onProgress(last / total);
    }
    await client.query(budgets);
    await client.query('vacuum analyze');
  } finally {
    await client.end();
  }
}
