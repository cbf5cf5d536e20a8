/**
 * Every alert: the value that is watched, its threshold, and the work of the operator who is woken. The rules for
 * Prometheus, their tests and the page docs/reference/alerts.md are made from this list.
 */
interface Series {
  readonly series: string;
  /** As promtool writes values: one a minute. */
  readonly values: string;
}

export interface Alert {
  readonly name: string;
  /** Has a value also while all is well. */
  readonly query: string;
  readonly is: '>' | '<' | '!=';
  readonly threshold: number;
  /** How long it must be so; default: not at all. */
  readonly for?: string;
  readonly severity: 'page' | 'ticket';
  readonly summary: string;
  readonly means: string;
  readonly look: string;
  readonly act: string;
  /** Its cause, and the labels by which it shows it, half an hour on. */
  readonly example: {
    readonly input: readonly Series[];
    readonly labels: Readonly<Record<string, string>>;
    /** The summary as the woken operator reads it. */
    readonly says: string;
  };
  /** Beside which it must not fire. */
  readonly calm: readonly Series[];
}

const faulty = 'failed|lost|timeout|invalid|malformed|too_large|output_invalid|not_sent';

export const alerts: readonly Alert[] = [
  {
    name: 'CapstanDeliveriesLate',
    query: 'max(capstan_deliveries_oldest_seconds)',
    is: '>',
    threshold: 30,
    for: '1m',
    severity: 'page',
    summary: 'Runs are not delivered to Temporal: the oldest waits for {{ $value | humanizeDuration }}.',
    means:
      'A run, a cancel or a decision is in the database, but not yet in Temporal. Servers still accept requests (202). No data is lost.',
    look: '`/readyz` of a server reports whether it reaches Temporal; the log of the servers has `a maintenance duty failed; it is retried`.',
    act: 'Restore Temporal, or the connection to it. Servers accept requests meanwhile, even a server that starts then. A worker that starts exits with 2; start it again later. Servers then deliver late rows within seconds, the oldest first. You need not repeat anything by hand.',
    example: {
      input: [{ series: 'capstan_deliveries_oldest_seconds{instance="a"}', values: '0+60x40' }],
      labels: {},
      says: 'Runs are not delivered to Temporal: the oldest waits for 31m 0s.',
    },
    calm: [{ series: 'capstan_deliveries_oldest_seconds{instance="a"}', values: '0 2 0 1+0x40' }],
  },
  {
    name: 'CapstanMaintenanceHolder',
    query: '(sum(capstan_maintenance_holder) or vector(0))',
    is: '!=',
    threshold: 1,
    for: '2m',
    severity: 'page',
    summary: '{{ $value }} processes hold maintenance; it must be one.',
    means:
      'With none, Capstan repairs, probes and redelivers nothing, and metrics that are counted in the database are missing. None can also mean that no server is scraped. With two, one has lost its connection to the database and has not noticed yet.',
    look: 'Targets of the scrape; `maintenance_holder` by process; the log of the servers.',
    act: 'None: start a server, or let it reach the database. Two for longer than a minute: stop the server without a connection. Two never repair the same thing twice: each repair is a statement on a locked row.',
    example: {
      input: [{ series: 'capstan_maintenance_holder{instance="a"}', values: '0+0x40' }],
      labels: {},
      says: '0 processes hold maintenance; it must be one.',
    },
    calm: [
      { series: 'capstan_maintenance_holder{instance="a"}', values: '1+0x40' },
      { series: 'capstan_maintenance_holder{instance="b"}', values: '0+0x40' },
    ],
  },
  {
    name: 'CapstanProcessDown',
    query: 'min by (instance) (up{job="capstan"})',
    is: '<',
    threshold: 1,
    for: '2m',
    severity: 'ticket',
    summary: 'Nothing answers at {{ $labels.instance }}.',
    means:
      'A server or worker does not run, or cannot be reached. The others do its work. Maintenance repairs its open work within a minute.',
    look: 'The log of the process, or of its service manager. One line gives the reason why it could not start.',
    act: 'Start it again. If you removed the target on purpose, remove it from the scrape configuration.',
    example: {
      input: [{ series: 'up{job="capstan",instance="w1"}', values: '0+0x40' }],
      labels: { instance: 'w1' },
      says: 'Nothing answers at w1.',
    },
    calm: [
      { series: 'up{job="capstan",instance="w1"}', values: '1+0x40' },
      { series: 'up{job="node",instance="w1"}', values: '0+0x40' },
    ],
  },
  {
    name: 'CapstanNoWorker',
    query: '(count(temporal_worker_task_slots_available{worker_type="WorkflowWorker"}) or vector(0))',
    is: '<',
    threshold: 1,
    for: '2m',
    severity: 'page',
    summary: 'No worker runs.',
    means:
      'Servers accept runs and deliver them to Temporal, but no run continues. No data is lost. The alert also fires if no worker has `METRICS_PORT`.',
    look: 'The workers’ logs: a worker that cannot start logs the reason in one line.',
    act: 'Start a worker. Waiting runs then continue without further action.',
    example: {
      input: [{ series: 'capstan_maintenance_holder{instance="a"}', values: '1+0x40' }],
      labels: {},
      says: 'No worker runs.',
    },
    calm: [
      {
        series: 'temporal_worker_task_slots_available{instance="w1",worker_type="WorkflowWorker"}',
        values: '0+0x40',
      },
    ],
  },
  {
    name: 'CapstanWorkflowTasksFail',
    query: '(sum(increase(temporal_workflow_task_execution_failed[30m])) or vector(0))',
    is: '>',
    threshold: 3,
    severity: 'page',
    summary:
      'Workers cannot continue a workflow: its task has failed {{ $value | humanize }} times in half an hour.',
    means:
      'Temporal retries without a limit, so such a run makes no progress, and nothing else reports it. Causes: a key is missing in `PAYLOAD_KEYS` of a worker, a worker is older than the run, or Capstan has a fault.',
    look: 'Temporal’s Web UI lists them by `TemporalReportedProblems is not null`, and the last event of such a history shows the reason. The workers’ log shows it too.',
    act: 'Give all workers the keys that servers have, or the newest version. Such runs then continue without further action.',
    example: {
      input: [
        {
          series: 'temporal_workflow_task_execution_failed{instance="w1",failure_reason="WorkflowError"}',
          values: '0+1x40',
        },
      ],
      labels: {},
      says: 'Workers cannot continue a workflow: its task has failed 30 times in half an hour.',
    },
    calm: [
      {
        series: 'temporal_workflow_task_execution_failed{instance="w1",failure_reason="WorkflowError"}',
        values: '0+0x20 2+0x20',
      },
    ],
  },
  {
    name: 'CapstanStartsFail',
    query: 'sum by (outcome) (increase(capstan_schedule_starts_total{outcome=~"refused|missed"}[30m]))',
    is: '>',
    threshold: 0,
    severity: 'ticket',
    summary: 'Starts of schedules were {{ $labels.outcome }}.',
    means:
      'Each such start is a run in state `failed`, with the reason as its error. `refused`: the job does not match a new version, a capability has no instance, or a limit is reached. `missed`: Temporal or all workers were away for longer than the catch-up window. Starts that the overlap policy skips do not count here; they are `skipped`.',
    look: '`capstan schedules show NAME`: the last start with its reason. `capstan ls --state failed` lists the runs.',
    act: 'Remove the cause, then repeat the start with `capstan rerun RUN`: it uses the schedule as it is then.',
    example: {
      input: [
        { series: 'capstan_schedule_starts_total{instance="w1",outcome="refused"}', values: '0+0x25 1+0x20' },
      ],
      labels: { outcome: 'refused' },
      says: 'Starts of schedules were refused.',
    },
    calm: [
      { series: 'capstan_schedule_starts_total{instance="w1",outcome="skipped"}', values: '0+1x40' },
      { series: 'capstan_schedule_starts_total{instance="w1",outcome="started"}', values: '0+1x40' },
      { series: 'capstan_schedule_starts_total{instance="w1",outcome="refused"}', values: '3+0x40' },
    ],
  },
  {
    name: 'CapstanRequestsFail',
    query:
      '((sum(rate(capstan_http_request_duration_seconds_count{status=~"5.."}[5m])) or vector(0)) / sum(rate(capstan_http_request_duration_seconds_count[5m])))',
    is: '>',
    threshold: 0.05,
    for: '5m',
    severity: 'page',
    summary: '{{ $value | humanizePercentage }} of all requests are answered by 5xx.',
    means:
      'Mostly the database does not answer; the status is then 503. Any other 5xx is a fault of Capstan.',
    look: '`/readyz` of each server, requests by route and status in the dashboard, and the log lines with `level` 50, each with the `request_id` that the client received.',
    act: 'Bring the database back. Report a 500 with its line.',
    example: {
      input: [
        { series: 'capstan_http_request_duration_seconds_count{status="503"}', values: '0+6x40' },
        { series: 'capstan_http_request_duration_seconds_count{status="200"}', values: '0+54x40' },
      ],
      labels: {},
      says: '10% of all requests are answered by 5xx.',
    },
    calm: [
      { series: 'capstan_http_request_duration_seconds_count{status="404"}', values: '0+60x40' },
      { series: 'capstan_http_request_duration_seconds_count{status="200"}', values: '0+6x40' },
    ],
  },
  {
    name: 'CapstanPoolFull',
    query: 'min_over_time(capstan_database_pool_connections{state="pending"}[5m])',
    is: '>',
    threshold: 0,
    severity: 'ticket',
    summary: '{{ $value }} statements of {{ $labels.instance }} wait for a connection to the database.',
    means:
      'All connections of the process are used, for minutes: requests and steps are slower than they need be.',
    look: "`select state, wait_event, query from pg_stat_activity where application_name = 'capstan'`: statements that take long or wait for a lock, or simply many.",
    act: 'Mend what is slow. Else raise `DATABASE_POOL` as far as `max_connections` of Postgres has room, or start another server or worker.',
    example: {
      input: [
        { series: 'capstan_database_pool_connections{instance="a",state="pending"}', values: '3+0x40' },
      ],
      labels: { instance: 'a', state: 'pending' },
      says: '3 statements of a wait for a connection to the database.',
    },
    calm: [
      {
        series: 'capstan_database_pool_connections{instance="a",state="pending"}',
        values: '0 9 0 9 0 9 0 9 0+0x40',
      },
      { series: 'capstan_database_pool_connections{instance="a",state="used"}', values: '20+0x40' },
    ],
  },
  {
    name: 'CapstanRepaired',
    query: 'sum by (kind) (increase(capstan_repairs_total[10m]))',
    is: '>',
    threshold: 0,
    severity: 'ticket',
    summary: 'Maintenance repaired {{ $labels.kind }}.',
    means:
      'A part died or was away, and what it left open was put right. `leases`: a process was killed or stood still with calls open; their cost is estimated. `lost_runs`, `forgotten_runs`, `forgotten_ladders`, `forgotten_schedules`: Temporal ended or forgot workflows. `budgets`: see CapstanBudgetDrift.',
    look: 'The log line `repaired` of the server that holds maintenance, and what ended around then.',
    act: 'Nothing to repair. Find out why the part died; after a restart that was meant, this alert is its echo.',
    example: {
      input: [{ series: 'capstan_repairs_total{kind="leases"}', values: '0+0x25 3+0x20' }],
      labels: { kind: 'leases' },
      says: 'Maintenance repaired leases.',
    },
    calm: [{ series: 'capstan_repairs_total{kind="leases"}', values: '7+0x40' }],
  },
  {
    name: 'CapstanDutyFails',
    query: 'sum by (duty) (increase(capstan_maintenance_failures_total[30m]))',
    is: '>',
    threshold: 3,
    severity: 'ticket',
    summary:
      'Maintenance cannot do {{ $labels.duty }}: it failed {{ $value | humanize }} times in half an hour.',
    means:
      'Maintenance retries the duty. Until it succeeds, its work is not done. `budgets`: the budgets are not compared with the costs of the calls. `retention`, `old_…`: tables grow. `webhooks`, `deliveries`: nothing is sent.',
    look: 'The log line `a maintenance duty failed; it is retried` of the server that holds maintenance: `duty` and `err`.',
    act: 'Mend what the line names: mostly a database or a media store that does not answer, or a statement that takes too long.',
    example: {
      input: [{ series: 'capstan_maintenance_failures_total{duty="budgets"}', values: '0+1x40' }],
      labels: { duty: 'budgets' },
      says: 'Maintenance cannot do budgets: it failed 30 times in half an hour.',
    },
    calm: [{ series: 'capstan_maintenance_failures_total{duty="budgets"}', values: '0+0x20 2+0x20' }],
  },
  {
    name: 'CapstanBudgetDrift',
    query: 'sum(increase(capstan_budget_drift_nano_usd_total[1h]))',
    is: '>',
    threshold: 0,
    severity: 'page',
    summary: 'Budgets differed from their attempts by {{ $value | humanize }} nano-USD and were corrected.',
    means:
      'Budgets are sums that are kept beside the attempts, changed in the same transaction. They never differ unless rows were changed by hand, a backup was restored in part, or Capstan has a fault.',
    look: 'The log line `a budget differed from its attempts and was corrected` names scope, day and amount.',
    act: 'The correction holds. If the database was not edited by hand, report it with that line.',
    example: {
      input: [{ series: 'capstan_budget_drift_nano_usd_total', values: '0+0x20 5000+0x20' }],
      labels: {},
      says: 'Budgets differed from their attempts by 5k nano-USD and were corrected.',
    },
    calm: [{ series: 'capstan_budget_drift_nano_usd_total', values: '0+0x40' }],
  },
  {
    name: 'CapstanBudgetNearlySpent',
    query:
      'max by (scope, project_id) (capstan_budget_spent_usd) / max by (scope, project_id) (capstan_budget_limit_usd > 0)',
    is: '>',
    threshold: 0.8,
    severity: 'ticket',
    summary:
      '{{ $value | humanizePercentage }} of the day of {{ $labels.scope }} {{ $labels.project_id }} are spent.',
    means:
      'Paid calls are refused when the limit is reached: steps then wait for budget, and reviews are opened.',
    look: '`capstan costs`, and the panel “Spend” by capability.',
    act: 'Raise the limit (`capstan budgets set --daily-limit-usd N`, with `--scope global` that of all projects), or let it stop what is spending. At midnight of the project’s zone a new day begins.',
    example: {
      input: [
        { series: 'capstan_budget_spent_usd{scope="project",project_id="prj_1"}', values: '9+0x40' },
        { series: 'capstan_budget_limit_usd{scope="project",project_id="prj_1"}', values: '10+0x40' },
      ],
      labels: { scope: 'project', project_id: 'prj_1' },
      says: '90% of the day of project prj_1 are spent.',
    },
    calm: [
      { series: 'capstan_budget_spent_usd{scope="project",project_id="prj_1"}', values: '7+0x40' },
      { series: 'capstan_budget_limit_usd{scope="project",project_id="prj_1"}', values: '10+0x40' },
    ],
  },
  {
    name: 'CapstanPaidDespiteFree',
    query: `(sum by (capability) (rate(capstan_attempts_total{price="paid"}[15m])) / sum by (capability) (rate(capstan_attempts_total[15m]) > 0) and on (capability) sum by (capability) (capstan_instances{state="up",price="free"}) > 0)`,
    is: '>',
    threshold: 0.5,
    for: '15m',
    severity: 'ticket',
    summary:
      '{{ $value | humanizePercentage }} of the calls of {{ $labels.capability }} are paid while free instances are up.',
    means:
      'Free instances are full, their breakers are open, or the steps ask for tags or versions that they do not have.',
    look: '`capstan route NAME --json` shows why each instance was passed over; panels “Slots” and “Breakers”.',
    act: 'Add free instances or raise `max_concurrency`. Repair the instances whose breakers are open. Or accept the price.',
    example: {
      input: [
        { series: 'capstan_attempts_total{capability="scale",price="paid"}', values: '0+60x40' },
        { series: 'capstan_attempts_total{capability="scale",price="free"}', values: '0+6x40' },
        { series: 'capstan_instances{capability="scale",state="up",price="free"}', values: '2+0x40' },
      ],
      labels: { capability: 'scale' },
      says: '90.91% of the calls of scale are paid while free instances are up.',
    },
    calm: [
      { series: 'capstan_attempts_total{capability="scale",price="paid"}', values: '0+60x40' },
      { series: 'capstan_instances{capability="scale",state="down",price="free"}', values: '2+0x40' },
    ],
  },
  {
    name: 'CapstanReviewOld',
    query: 'max by (kind) (capstan_reviews_oldest_seconds{kind!="skill"})',
    is: '>',
    threshold: 14_400,
    severity: 'ticket',
    summary: 'A review of kind {{ $labels.kind }} waits for {{ $value | humanizeDuration }}.',
    means:
      'Runs wait for a review that is not decided yet. Reviews of skills do not count: no run waits for them, and they may stay open for 30 days.',
    look: '`capstan review ls`, or Reviews in the console.',
    act: 'Decide it. If reviewers receive no notice, set up a webhook for `review.opened`.',
    example: {
      input: [{ series: 'capstan_reviews_oldest_seconds{kind="escalation"}', values: '20000+60x40' }],
      labels: { kind: 'escalation' },
      says: 'A review of kind escalation waits for 6h 4m 20s.',
    },
    calm: [
      { series: 'capstan_reviews_oldest_seconds{kind="escalation"}', values: '0+60x40' },
      { series: 'capstan_reviews_oldest_seconds{kind="skill"}', values: '20000+60x40' },
    ],
  },
  {
    name: 'CapstanEventsLate',
    query: 'max(capstan_event_horizon_lag_seconds)',
    is: '>',
    threshold: 10,
    for: '1m',
    severity: 'ticket',
    summary: 'A transaction is open for {{ $value | humanizeDuration }}: events are that late.',
    means:
      'Readers of events wait for the oldest transaction of the whole database cluster, also of other databases. Runs continue, but clients that watch them receive no new events.',
    look: '`select pid, datname, usename, state, xact_start, query from pg_stat_activity where backend_xid is not null order by xact_start`',
    act: 'Let it end, or end it with `pg_terminate_backend`. Dumps and migrations of other databases belong on another cluster.',
    example: {
      input: [{ series: 'capstan_event_horizon_lag_seconds', values: '0+60x40' }],
      labels: {},
      says: 'A transaction is open for 31m 0s: events are that late.',
    },
    calm: [{ series: 'capstan_event_horizon_lag_seconds', values: '0 3 0 1+0x40' }],
  },
  {
    name: 'CapstanCapabilityMissing',
    query:
      '(sum by (capability) (capstan_waiting_steps{reason="capability",capability!=""}) unless on (capability) sum by (capability) (capstan_instances{state="up"}) > 0)',
    is: '>',
    threshold: 0,
    for: '5m',
    severity: 'page',
    summary: '{{ $value }} steps wait for {{ $labels.capability }}, of which no instance is up.',
    means: 'Runs continue when an instance registers.',
    look: '`capstan capabilities` and the log of the instances; did they reach the router with a valid key?',
    act: 'Start an instance.',
    example: {
      input: [
        { series: 'capstan_waiting_steps{reason="capability",capability="scale"}', values: '4+0x40' },
        { series: 'capstan_instances{capability="scale",state="down",price="free"}', values: '1+0x40' },
      ],
      labels: { capability: 'scale' },
      says: '4 steps wait for scale, of which no instance is up.',
    },
    calm: [
      { series: 'capstan_waiting_steps{reason="capability",capability="scale"}', values: '4+0x40' },
      { series: 'capstan_instances{capability="scale",state="up",price="free"}', values: '1+0x40' },
    ],
  },
  {
    name: 'CapstanFaultyAttempts',
    query: `sum by (capability) (rate(capstan_attempts_total{outcome=~"${faulty}"}[10m])) / sum by (capability) (rate(capstan_attempts_total[10m]) > 0)`,
    is: '>',
    threshold: 0.1,
    for: '10m',
    severity: 'ticket',
    summary: '{{ $value | humanizePercentage }} of the attempts of {{ $labels.capability }} fail.',
    means:
      'Instances answer 5xx or nothing, or what does not match their own schema. The router tries others and opens breakers; runs are slower and cost more. Refused inputs (422) are not counted here.',
    look: 'Attempts by outcome in the dashboard; `capstan capabilities NAME` names the endpoints; the log of the instance.',
    act: 'Mend or take away the instance that fails. One that never answers in time needs a longer `timeout` of the step.',
    example: {
      input: [
        { series: 'capstan_attempts_total{capability="scale",outcome="lost"}', values: '0+6x40' },
        { series: 'capstan_attempts_total{capability="scale",outcome="answered"}', values: '0+24x40' },
      ],
      labels: { capability: 'scale' },
      says: '20% of the attempts of scale fail.',
    },
    calm: [
      { series: 'capstan_attempts_total{capability="scale",outcome="rejected"}', values: '0+24x40' },
      { series: 'capstan_attempts_total{capability="scale",outcome="answered"}', values: '0+24x40' },
    ],
  },
  {
    name: 'CapstanNoActivitySlot',
    query: 'min by (instance) (temporal_worker_task_slots_available{worker_type="ActivityWorker"})',
    is: '<',
    threshold: 1,
    for: '1m',
    severity: 'ticket',
    summary: 'The worker {{ $labels.instance }} has no free slot for steps.',
    means: 'Further steps wait in Temporal until one ends. A slot mostly waits for an answer over HTTP.',
    look: 'Processor time of the worker; `instance_slots` against `instance_slots_held`.',
    act: 'Raise `ACTIVITY_SLOTS` while the worker has processor time left; else start another worker.',
    example: {
      input: [
        {
          series: 'temporal_worker_task_slots_available{instance="w1",worker_type="ActivityWorker"}',
          values: '0+0x40',
        },
      ],
      labels: { instance: 'w1' },
      says: 'The worker w1 has no free slot for steps.',
    },
    calm: [
      {
        series: 'temporal_worker_task_slots_available{instance="w1",worker_type="ActivityWorker"}',
        values: '500+0x40',
      },
    ],
  },
];

export function toExpression({ query, is, threshold }: Alert): string {
  return `${query} ${is} ${threshold}`;
}
