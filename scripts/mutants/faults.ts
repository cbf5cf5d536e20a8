/**
 * Faults that a person might make by hand, in SQL functions and services, each against a rule that must not be broken.
 * `npm run test:mutants -- --faults` makes one after the other in a copy; the tests that are named must notice.
 */
export interface Fault {
  readonly name: string;
  readonly file: string;
  /** Occurs in the file once. */
  readonly find: string;
  readonly put: string;
  readonly tests: readonly string[];
}

const money: readonly Fault[] = [
  {
    name: 'a claim ignores every budget',
    file: 'src/db/sql/money.sql',
    find: 'where l.wanted > 0 and l.spent',
    put: 'where l.wanted < 0 and l.spent',
    tests: ['test/db/money/budget.test.ts'],
  },
  {
    name: 'a claim ignores what others have reserved',
    file: 'src/db/sql/money.sql',
    find: 'l.spent + l.reserved + l.wanted - coalesce(p_risk, 0) + case',
    put: 'l.spent + l.wanted - coalesce(p_risk, 0) + case',
    tests: ['test/db/money/budget.test.ts'],
  },
  {
    name: 'a batch that is given out twice loses its calls where money is short',
    file: 'src/db/sql/claims.sql',
    find: 'if not c.is_first and not c.begins_step then',
    put: 'if not c.is_first then',
    tests: ['test/db/money/budget.test.ts'],
  },
  {
    name: 'a day of a project has no limit',
    file: 'src/db/sql/money.sql',
    find: 'select nullif(p.daily_limit_nano, 0) into v_limit',
    put: 'select null::bigint into v_limit',
    tests: ['test/db/money/budget-day.test.ts'],
  },
  {
    name: 'a claim ignores the ceilings of the runs above',
    file: 'src/db/sql/money.sql',
    find: 'where r.run_id = p_run\n',
    put: 'where r.run_id = p_run and false\n',
    tests: ['test/db/run/sub-run.test.ts'],
  },
  {
    name: 'a settlement is written twice',
    file: 'src/db/sql/attempts.sql',
    find: "when 'dispatched' then true\n",
    put: "when 'dispatched' then true when 'settled' then true\n",
    tests: ['test/db/attempt/attempt.test.ts'],
  },
  {
    name: 'a settlement does not give its reservation back',
    file: 'src/db/sql/money.sql',
    find: 'm.back as moved',
    put: '0::bigint as moved',
    tests: ['test/db/money/budget.test.ts'],
  },
  {
    name: 'a claim that came to nothing keeps its reservation',
    file: 'src/db/sql/claims.sql',
    find: "if p_is_paid and p_refusal is null and 'claimed' <> any (outcomes) then",
    put: 'if false then',
    tests: ['test/db/money/budget.test.ts'],
  },
  {
    name: 'a reservation is missing in the ledger',
    file: 'src/db/sql/claims.sql',
    find: "where x.reserved_nano > 0 and outcomes[x.ordinality] = 'claimed';",
    put: 'where false;',
    tests: ['test/db/attempt/attempt.test.ts'],
  },
  {
    name: 'a lost call is missing in the ledger',
    file: 'src/db/sql/attempts.sql',
    find: 'from lost where reserved_nano > 0',
    put: 'from lost where false',
    tests: [
      'test/db/money/budget.test.ts',
      'test/db/run/sub-run.test.ts',
      'test/db/attempt/attempt-race.test.ts',
    ],
  },
  {
    name: 'a lost call costs nothing',
    file: 'src/db/sql/attempts.sql',
    find: 'settled_nano = reserved_nano, ',
    put: 'settled_nano = 0, ',
    tests: ['test/db/money/budget.test.ts'],
  },
  {
    name: 'the truth about a lost call is charged besides the estimate',
    file: 'src/db/sql/attempts.sql',
    find: "e.settled_nano - case when a.state = 'lost' then a.settled_nano else 0 end as cost",
    put: 'e.settled_nano as cost',
    tests: ['test/db/money/budget.test.ts'],
  },
  {
    name: 'a call after midnight counts on another day than its admission',
    file: 'src/db/sql/money.sql',
    find: 'a.budget_window as day,',
    put: "(p_now at time zone 'UTC')::date as day,",
    tests: ['test/db/money/budget.test.ts'],
  },
  {
    name: 'a claim reserves less than the worst case',
    file: 'src/use-cases/routing/reservation.ts',
    find: '    reserved_nano: reserved,\n',
    put: '    reserved_nano: reserved / 2n,\n',
    tests: ['test/api/calls.test.ts'],
  },
  {
    name: 'a claim is made at a price that has changed',
    file: 'src/db/sql/claims.sql',
    find: 'or i.cost_type <> c.cost_type or i.rate_usd <> c.rate_usd\n',
    put: '\n',
    tests: ['test/db/attempt/attempt.test.ts', 'test/db/money/budget.test.ts'],
  },
];

const leases: readonly Fault[] = [
  {
    name: 'a lease is never renewed',
    file: 'src/db/attempt/attempt.ts',
    find: "set lease_until = clock_timestamp() + ? * interval '1 millisecond'\n",
    put: "set lease_until = a.lease_until + 0 * ? * interval '1 millisecond'\n",
    tests: ['test/db/attempt/attempt.test.ts', 'test/db/attempt/attempt-race.test.ts'],
  },
  {
    name: 'leases are renewed once and then no more',
    file: 'src/parts/delivery/lease-renewer.ts',
    find: '() => schedule(intervalMs),\n',
    put: '() => undefined,\n',
    tests: ['test/parts/delivery/lease-renewer.test.ts'],
  },
  {
    name: 'a call is lost before its lease has run out',
    file: 'src/db/attempt/attempt.ts',
    find: "lease_until < clock_timestamp() - interval '5 seconds'",
    put: "lease_until < clock_timestamp() + interval '1 day'",
    tests: ['test/db/attempt/attempt.test.ts'],
  },
  {
    name: 'a call whose lease has run out is never lost',
    file: 'src/db/attempt/attempt.ts',
    find: "where state in ('reserved', 'dispatched') and lease_until < ",
    put: "where state in ('reserved') and lease_until < ",
    tests: ['test/db/attempt/attempt.test.ts'],
  },
  {
    name: 'a call is ended by a process that does not hold it',
    file: 'src/db/sql/attempts.sql',
    find: 'where a.attempt_id = e.attempt_id and a.token = e.token\n',
    put: 'where a.attempt_id = e.attempt_id\n',
    tests: ['test/db/attempt/attempt.test.ts'],
  },
  {
    name: 'an Idempotency-Key is taken over while its call may be alive',
    file: 'src/db/idempotency.ts',
    find: 'and a.lease_until > clock_timestamp())`',
    put: 'and false)`',
    tests: ['test/api/idempotent-calls.test.ts'],
  },
];

const runs: readonly Fault[] = [
  {
    name: 'a closed run is closed again',
    file: 'src/db/run/run.ts',
    find: 'where run_id = $1 and finished_at is null\n     and not ($7',
    put: 'where run_id = $1\n     and not ($7',
    tests: ['test/db/run/run.test.ts'],
  },
  {
    name: 'a late answer overwrites the end of a step',
    file: 'src/db/sql/attempts.sql',
    find: "and s.item = e.item and s.state in ('running', 'retrying')\n",
    put: 'and s.item = e.item\n',
    tests: ['test/db/run/run.test.ts', 'test/db/attempt/attempt.test.ts'],
  },
  {
    name: 'a step with a result is called again',
    file: 'src/db/sql/claims.sql',
    find: "case when s.state = 'succeeded' then 'answered'\n",
    put: "case when false then 'answered'\n",
    tests: ['test/db/attempt/attempt.test.ts'],
  },
  {
    name: 'a cancel that was asked for again meanwhile counts as delivered',
    file: 'src/db/run/run-delivery.ts',
    find: "where run_id = ? and coalesce(cancel_mode, 'graceful') = ?`",
    put: 'where run_id = ? and ? is not null`',
    tests: ['test/db/run/run.test.ts'],
  },
  {
    name: 'a cancel revives as a run that has begun',
    file: 'src/db/run/run.ts',
    find: "and state in ('queued', 'paused') and started_at is null returning run_id",
    put: "and state in ('queued', 'paused', 'cancelling') and started_at is null returning run_id",
    tests: ['test/db/run/run.test.ts'],
  },
  {
    name: 'two requests with one Idempotency-Key are two runs',
    file: 'src/use-cases/idempotency.ts',
    find: 'if (!(await keepAnswer(trx, asked, { status, answer }))) throw new KeyTaken();',
    put: 'await keepAnswer(trx, asked, { status, answer });',
    tests: ['test/api/runs.test.ts'],
  },
  {
    name: 'the log of a run shows what is behind an open transaction',
    file: 'src/db/run/event.ts',
    find: "'xid < coalesce(:before::text::xid8, pg_snapshot_xmin(pg_current_snapshot()))'",
    put: "'xid < coalesce(:before::text::xid8, pg_snapshot_xmax(pg_current_snapshot()))'",
    tests: ['test/db/run/event.test.ts'],
  },
  {
    name: 'a run that has ended leaves the runs that it started alone',
    file: 'src/db/sql/runs.sql',
    find: 'where parent_run_id = p_run_id and (state',
    put: 'where parent_run_id = p_run_id and false and (state',
    tests: ['test/db/run/sub-run.test.ts'],
  },
];

const instances: readonly Fault[] = [
  {
    name: 'an instance has one call more than it takes at once',
    file: 'src/db/sql/claims.sql',
    find: 'v_held >= i.max_concurrency',
    put: 'v_held > i.max_concurrency',
    tests: ['test/db/attempt/attempt-race.test.ts'],
  },
  {
    name: 'a host has more calls than it bears',
    file: 'src/db/sql/claims.sql',
    find: 'v_takes > coalesce(v_rooms[v_host], 0)',
    put: 'v_takes > coalesce(v_rooms[v_host], 0) + 1',
    tests: ['test/db/attempt/host-slots.test.ts'],
  },
  {
    name: 'claims for instances of one host do not wait for each other',
    file: 'src/db/sql/hosts.sql',
    find: 'and h.name = k.host for no key update) h;',
    put: 'and h.name = k.host) h;',
    tests: ['test/db/attempt/host-slots.test.ts'],
  },
  {
    name: 'a claim goes through an open breaker',
    file: 'src/db/sql/claims.sql',
    find: ' or i.breaker_until > clock_timestamp()\n',
    put: '\n',
    tests: ['test/db/instance/instance-breaker.test.ts', 'test/db/attempt/attempt.test.ts'],
  },
  {
    name: 'a claim goes to an instance that is down',
    file: 'src/db/sql/claims.sql',
    find: "if i.state not in ('up', 'suspect') or",
    put: 'if',
    tests: ['test/db/attempt/attempt.test.ts', 'test/db/money/budget.test.ts'],
  },
  {
    name: 'an evicted instance stays in the fleet',
    file: 'src/parts/fleet/fleet-view.ts',
    find: 'row.down_since_ms !== null && nowMs - row.down_since_ms > evictedAfterMs',
    put: 'false',
    tests: ['test/parts/fleet/fleet-poller.test.ts'],
  },
  {
    name: 'an instance that was taken out comes back by itself',
    file: 'packages/core/src/fleet/instance-states.ts',
    find: "  if (facts.state === 'deregistered') return null;\n",
    put: '',
    tests: ['packages/core/test/fleet/instance-states.test.ts'],
  },
  {
    name: 'an unknown instance is adopted under the name of another capability',
    file: 'src/use-cases/registry/heartbeat.ts',
    find: 'if (spec.value.name !== name) throw',
    put: 'if (false) throw',
    tests: ['test/use-cases/registry/adoption.test.ts'],
  },
];

const ladders: readonly Fault[] = [
  {
    name: 'a transition that is given out again makes its call beside the first one',
    file: 'src/use-cases/escalation/ladder/transition.ts',
    find: 'if (again && ',
    put: 'if (!again && ',
    tests: ['test/use-cases/escalation/step-ladder.test.ts'],
  },
  {
    name: 'the history of an escalation is truncated',
    file: 'src/use-cases/escalation/ladder/stored-ladder.ts',
    find: 'escalation_history: history,',
    put: 'escalation_history: history.slice(0, 2),',
    tests: ['test/use-cases/escalation/job-ladder.test.ts'],
  },
  {
    name: 'what a history holds may be altered',
    file: 'src/db/sql/triggers/refuse-shrinking.sql',
    find: 'is distinct from e.element',
    put: 'is null',
    tests: ['test/db/escalation/escalation.test.ts'],
  },
  {
    name: 'advice is not stored',
    file: 'src/use-cases/escalation/ladder/stored-ladder.ts',
    find: 'escalation_advice: advice };',
    put: 'escalation_advice: [] };',
    tests: ['test/use-cases/escalation/job-ladder.test.ts'],
  },
  {
    name: 'no person is asked at the end of a ladder',
    file: 'src/use-cases/escalation/ladder/progress.ts',
    find: "const asks = outcome.kind === 'stopped' && mayAsk(",
    put: "const asks = outcome.kind === 'goes_on' && mayAsk(",
    tests: ['test/use-cases/escalation/no-models.test.ts'],
  },
];

const skills: readonly Fault[] = [
  {
    name: 'a failure does not lower the confidence in a skill',
    file: 'src/db/skill-use.ts',
    find: 'failure_count = s.failure_count + c.failures',
    put: 'failure_count = s.failure_count',
    tests: ['test/db/skill/skill.test.ts'],
  },
  {
    name: 'a flagged skill is used as an instruction',
    file: 'src/parts/skill-matcher.ts',
    find: 'flagged: row.flagged_at !== null',
    put: 'flagged: false',
    tests: ['test/parts/skill-matcher.test.ts', 'test/use-cases/skills/skill-uses.test.ts'],
  },
];

const access: readonly Fault[] = [
  {
    name: 'a key works in a project that it does not hold',
    file: 'src/use-cases/access/caller.ts',
    find: 'if (project_id !== undefined && holder.projects.includes(project_id)) return',
    put: 'if (project_id !== undefined) return',
    tests: ['test/api/authentication.test.ts'],
  },
  {
    name: 'a revoked key works',
    file: 'src/db/access/api-key.ts',
    find: '.revoked_at is null and',
    put: '.key_id is not null and',
    tests: ['test/api/keys.test.ts'],
  },
  {
    name: 'a key without the scope may call a route',
    file: 'src/use-cases/access/caller.ts',
    find: 'if (!holdsScope(holder, scope)) throw refuseScope(holder, scope);',
    put: '',
    tests: ['test/api/cache.test.ts'],
  },
  {
    name: 'a key without a scope of any name may call a route',
    file: 'src/use-cases/access/caller.ts',
    find: 'if (!mayCall(holder, scope)) throw refuseScope(holder, scope);',
    put: '',
    tests: ['test/api/calls.test.ts'],
  },
  {
    name: 'a call reads a file of another project',
    file: 'src/parts/media/own-media.ts',
    find: 'const foreign = unknown.find((jobId) => !found.has(jobId));',
    put: "const foreign = unknown.find((jobId) => found.has(''));",
    tests: ['test/use-cases/steps/foreign-media.test.ts'],
  },
  {
    name: 'a project that is being erased takes new work',
    file: 'src/db/sql/triggers/refuse-erased.sql',
    find: 'if v_since is not null then',
    put: 'if false then',
    tests: ['test/use-cases/erasure/erase-projects.test.ts'],
  },
];

const upkeep: readonly Fault[] = [
  {
    name: 'a run is deleted though one below it has just ended',
    file: 'src/db/deletion/old-runs.ts',
    find: ' or r.finished_at >= :endedBefore\n',
    put: '\n',
    tests: ['test/use-cases/retention/purge.test.ts'],
  },
  {
    name: 'a run is deleted while a call of it is open',
    file: 'src/db/deletion/old-runs.ts',
    find: "and a.state in ('reserved', 'dispatched'))\n",
    put: "and a.state in ('reserved'))\n",
    tests: ['test/use-cases/retention/purge.test.ts'],
  },
  {
    name: 'a webhook counts as delivered before it was taken',
    file: 'src/use-cases/webhooks/delivery.ts',
    find: 'return { delivery_id, status, error, againInMs: error === null ? null : canComeAgain };',
    put: 'return { delivery_id, status, error: null, againInMs: error === null ? null : canComeAgain && null };',
    tests: ['test/api/webhooks.test.ts'],
  },
  {
    name: 'the end of a sub-run counts as told before it was',
    file: 'src/db/run/run-delivery.ts',
    find: 'parent_workflow_id is not null and parent_told_at is null and finished_at is not null`',
    put: 'parent_workflow_id is not null and parent_told_at is null and finished_at is null`',
    tests: ['test/use-cases/runs/due-work.test.ts'],
  },
  {
    name: 'the result of another project answers a call',
    file: 'src/db/attempt/cached-result.ts',
    find: 'where c.project_id = $1 and c.key = any',
    put: 'where $1::text is not null and c.key = any',
    tests: ['test/db/cached-result.test.ts', 'test/parts/cache/cached-calls.test.ts'],
  },
  {
    name: 'the result of a step that has not succeeded answers a call',
    file: 'src/db/attempt/cached-result.ts',
    find: " and s.state = 'succeeded'\n",
    put: '\n',
    tests: ['test/db/cached-result.test.ts'],
  },
  {
    name: 'a result answers a call that asks for a fresher one',
    file: 'src/db/attempt/cached-result.ts',
    find: "and c.stored_at > now - $3::float8 * interval '1 millisecond'",
    put: "and c.stored_at > now - ($3::float8 + 1e12) * interval '1 millisecond'",
    tests: ['test/db/cached-result.test.ts'],
  },
];

export const faults: readonly Fault[] = [
  ...money,
  ...leases,
  ...runs,
  ...instances,
  ...ladders,
  ...skills,
  ...access,
  ...upkeep,
];
