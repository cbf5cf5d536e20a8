/** Each fault, its short and long size, and the expected result. The page shows them in this order. */
export interface FaultRow {
  readonly fault: string;
  readonly short: string;
  readonly long: string;
  readonly expected: string;
}

const rows = {
  'worker-killed': {
    fault: 'workers are killed (`SIGKILL`) in turn during runs of six paid steps',
    short: '60 runs, a kill 5 s after each return',
    long: '500 runs, a kill 10 s after each return',
    expected: 'every run is correct, no step is charged twice',
  },
  'server-killed': {
    fault: 'servers are killed in turn while a client submits runs with Idempotency-Keys',
    short: '150 submissions, a kill 3 s after each return',
    long: '1,000 submissions, a kill 5 s after each return',
    expected: 'as many runs as submissions',
  },
  'postgres-restarted': {
    fault: 'Postgres is restarted repeatedly',
    short: '100 runs, a restart 5 s after each return',
    long: '5,000 runs, a restart 31 s after each return',
    expected: 'no run is lost or duplicated, no process exits',
  },
  'answers-lost': {
    fault:
      '5 % of the answers of Postgres and instances are lost with their connection, after the work was done',
    short: '60 runs',
    long: '500 runs',
    expected: 'correct outputs, one charge each; each lost call is charged as estimated',
  },
  'temporal-away': {
    fault: 'both Temporal nodes are frozen (`SIGSTOP`) while runs are submitted',
    short: '100 submissions in 20 s',
    long: '1,000 submissions in 10 min',
    expected: 'every submission is accepted at the first try, every run completes after the outage',
  },
  'temporal-silent': {
    fault: 'both Temporal nodes are frozen beyond the heartbeat timeout during long calls',
    short: '20 calls, 5 s beyond the heartbeat timeout',
    long: '200 calls, 60 s beyond the heartbeat timeout',
    expected: 'no call is aborted or repeated',
  },
  'instance-killed': {
    fault: 'an instance dies during a call while another one is healthy',
    short: '3 times',
    long: '20 times',
    expected: 'the next attempt begins within 5 s, the run succeeds',
  },
  'instance-blackholed': {
    fault:
      'an instance disappears during a call: packets to and from it are dropped, and its answer comes too late',
    short: 'once; only as root on Linux, with `ip`',
    long: '5 times; only as root on Linux, with `ip`',
    expected: 'the loss is detected within 20 s, the late answer is refused',
  },
  'instance-closing': {
    fault: 'an instance accepts no new connections and finishes its call, as in an orderly shutdown',
    short: 'a call of 20 s',
    long: 'a call of 2 min',
    expected: 'the call is made once',
  },
  'api-away': {
    fault: 'both servers are frozen while instances send heartbeats',
    short: '100 instances, 20 s',
    long: '1,000 instances, 10 min',
    expected: 'no instance is lost, all are up within 10 s after the servers return',
  },
  'worker-paused': {
    fault: 'a worker is frozen beyond its heartbeats and leases, then continues',
    short: '30 runs, 20 s',
    long: '100 runs, 155 s',
    expected: 'the other worker makes its calls, its late results are refused',
  },
  'large-dags': {
    fault: 'a chain, a fan-out and a random graph of many steps',
    short: '300 steps each',
    long: '10,000 steps each',
    expected: 'the runs complete, no history exceeds 10,240 events',
  },
  'large-outputs': {
    fault: 'instances answer 1.9, 2.1, 16 and 65 MiB',
    short: 'once each',
    long: 'once each',
    expected: 'answers up to 16 MiB succeed; the last one fails once, with a clear error',
  },
  cancels: {
    fault: 'runs are cancelled at random moments',
    short: '80 runs',
    long: '500 runs',
    expected: '99 of 100 end within 10 s; afterwards no call begins and no money stays reserved',
  },
  'rolling-restart': {
    fault: 'workers and servers are stopped (`SIGTERM`) and replaced one by one, each twice, during runs',
    short: '100 runs',
    long: '300 runs',
    expected: 'every run completes, no non-determinism error',
  },
  sigterm: {
    fault: 'servers are stopped (`SIGTERM`) in turn under requests that the client does not retry',
    short: '100 submissions, 20 reads a second',
    long: '300 submissions, 20 reads a second',
    expected: 'no request fails, each process exits within 30 s',
  },
  'everyone-503': {
    fault: 'all three instances answer 503 for a while',
    short: '30 runs, 20 s',
    long: '200 runs, 5 min',
    expected: 'every run completes within 60 s; the breaker lets one trial per instance and window through',
  },
  'webhook-silent': {
    fault: 'one receiver of webhooks accepts connections and never answers, another one answers',
    short: '60 runs',
    long: '600 runs',
    expected: 'the receiver that answers gets each run within 5 s of its end',
  },
  'parts-in-turn': {
    fault:
      'server, worker, Temporal node and S3 are killed in turn, then Postgres is restarted; every fifth run has a file',
    short: '200 runs',
    long: '1,000 runs',
    expected: 'no submission fails after one retry, every run and file is correct, no money stays reserved',
  },
} as const satisfies Readonly<Record<string, FaultRow>>;

export type FaultName = keyof typeof rows;
export const faultRows: Readonly<Record<FaultName, FaultRow>> = rows;
export const faultNames = Object.keys(rows) as readonly FaultName[];

export function isFaultName(name: string): name is FaultName {
  return Object.hasOwn(rows, name);
}

/** Faults that this cluster does not play, with the reason. */
export const notRun = [
  {
    fault: 'crash points in the code, each as a kill and as an exception',
    reason:
      'Production code has no switches that break it. Kills at random moments replace them: [killed-engine](../test/e2e/killed-engine.test.ts), [killed-inline](../test/e2e/killed-inline.test.ts) and [killed-escalation](../test/e2e/killed-escalation.test.ts), by `npm run test:long`.',
  },
  {
    fault: 'a rolling restart to a version with another migration, and back',
    reason:
      'The cluster has one package, and `rolling-restart` starts the same build again. For two versions, run `npm run faults -- migrations` ([rolling-migration](../test/e2e/rolling-migration.test.ts)).',
  },
  {
    fault: 'dropped packets to and from Postgres or Temporal',
    reason:
      'Only links to instances can be cut (`instance-blackholed`, as root on Linux). [silent-database](../test/api/silent-database.test.ts) covers silent connections to Postgres.',
  },
] as const;
