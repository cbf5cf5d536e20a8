/** The faults that are survived: what is done, in short and in long, and what is expected. The page shows them in this order. */
export interface FaultRow {
  readonly fault: string;
  readonly short: string;
  readonly long: string;
  readonly expected: string;
}

const rows = {
  'worker-killed': {
    fault: 'workers are killed (`SIGKILL`) in turn under runs of six paid steps',
    short: '60 runs, a kill 5 s after each return',
    long: '500 runs, a kill 10 s after each return',
    expected: 'every run right, no step charged twice',
  },
  'server-killed': {
    fault: 'servers are killed in turn while runs are submitted under keys',
    short: '150 submissions, a kill 3 s after each return',
    long: '1,000 submissions, a kill 5 s after each return',
    expected: 'exactly as many runs as submissions',
  },
  'postgres-restarted': {
    fault: 'Postgres is restarted again and again',
    short: '100 runs, a restart 5 s after each return',
    long: '5,000 runs, a restart 31 s after each return',
    expected: 'nothing lost, nothing doubled, no process exits',
  },
  'answers-lost': {
    fault: 'of what Postgres and instances answer 5 % is lost with its connection, after it was done',
    short: '60 runs',
    long: '500 runs',
    expected: 'the right outputs, one charge each; a lost call is booked beside it, as estimated',
  },
  'temporal-away': {
    fault: 'both Temporal nodes are frozen (`SIGSTOP`) while runs are submitted',
    short: '100 submissions in 20 s',
    long: '1,000 submissions in 10 min',
    expected: 'all taken at the first try, all complete after it is back',
  },
  'temporal-silent': {
    fault: 'both Temporal nodes are frozen for longer than a heartbeat lasts, under long calls',
    short: '20 calls, 5 s beyond the heartbeats',
    long: '200 calls, 60 s beyond the heartbeats',
    expected: 'no call is cut, none is made twice',
  },
  'instance-killed': {
    fault: 'an instance dies in the middle of a call, another one is healthy',
    short: '3 times',
    long: '20 times',
    expected: 'the next attempt within 5 s, the run is untouched',
  },
  'instance-blackholed': {
    fault:
      'an instance vanishes in the middle of a call: packets to and from it are dropped without a word; its answer comes too late',
    short: 'once; only as root on Linux, with `ip`',
    long: '5 times; only as root on Linux, with `ip`',
    expected: 'noticed within 20 s, the late answer is not taken',
  },
  'instance-closing': {
    fault: 'an instance takes no new connections and finishes its call, as in an orderly shutdown',
    short: 'a call of 20 s',
    long: 'a call of 2 min',
    expected: 'the call is made once',
  },
  'api-away': {
    fault: 'both servers are frozen while instances send heartbeats',
    short: '100 instances, 20 s',
    long: '1,000 instances, 10 min',
    expected: 'none lost, all up within 10 s of its return',
  },
  'worker-paused': {
    fault: 'a worker is frozen beyond its heartbeats and leases, and goes on',
    short: '30 runs, 20 s',
    long: '100 runs, 155 s',
    expected: 'its calls are made by the other worker, its late results are refused',
  },
  'large-dags': {
    fault: 'a chain, a fan-out and a random graph of many steps',
    short: '300 steps each',
    long: '10,000 steps each',
    expected: 'complete, no history beyond 10,240 events',
  },
  'large-outputs': {
    fault: 'instances answer 1.9, 2.1, 16 and 65 MiB',
    short: 'once each',
    long: 'once each',
    expected: 'up to 16 MiB pass; the last fails once, clearly',
  },
  cancels: {
    fault: 'runs are cancelled at random moments',
    short: '80 runs',
    long: '500 runs',
    expected: '99 of 100 end within 10 s, nothing begins later, nothing stays reserved',
  },
  'rolling-restart': {
    fault: 'workers and servers are ended (`SIGTERM`) and replaced one by one, all of them twice, under runs',
    short: '100 runs',
    long: '300 runs',
    expected: 'all complete, no non-determinism',
  },
  sigterm: {
    fault: 'servers are ended (`SIGTERM`) in turn under requests that nobody tries again',
    short: '100 submissions, 20 reads a second',
    long: '300 submissions, 20 reads a second',
    expected: 'no request fails, each process has gone within 30 s',
  },
  'everyone-503': {
    fault: 'all three instances answer 503 for a while',
    short: '30 runs, 20 s',
    long: '200 runs, 5 min',
    expected: 'every run completes; one trial per instance and window of its breaker; all done within 60 s',
  },
  'webhook-silent': {
    fault: "a webhook's receiver takes connections and says nothing, beside one that answers",
    short: '60 runs',
    long: '600 runs',
    expected: 'the one that answers hears of every run within 5 s of its end',
  },
  'parts-in-turn': {
    fault:
      'server, worker, Temporal node and S3 are killed in turn, then Postgres is restarted; a fifth of the runs has a file',
    short: '200 runs',
    long: '1,000 runs',
    expected:
      'no submission fails for a client that tries once more, every run and file right, nothing stays reserved',
  },
} as const satisfies Readonly<Record<string, FaultRow>>;

export type FaultName = keyof typeof rows;
export const faultRows: Readonly<Record<FaultName, FaultRow>> = rows;
export const faultNames = Object.keys(rows) as readonly FaultName[];

export function isFaultName(name: string): name is FaultName {
  return Object.hasOwn(rows, name);
}

/** What was meant to be shown too, and is not: with the reason. */
export const notRun = [
  {
    fault: 'named crash points in the code, each as a kill and as an exception',
    reason:
      'there are none: production code has no switches that break it. Kills at random moments stand for them: [killed-engine](../test/e2e/killed-engine.test.ts), [killed-inline](../test/e2e/killed-inline.test.ts) and [killed-escalation](../test/e2e/killed-escalation.test.ts), `npm run test:long`',
  },
  {
    fault: 'a rolling restart to a version with another migration, and back',
    reason:
      'the cluster is made of one package; `rolling-restart` starts the same build anew. Two versions: `npm run faults:migrations` ([rolling-migration](../test/e2e/rolling-migration.test.ts))',
  },
  {
    fault: 'packets to and from Postgres or Temporal that are dropped without a word',
    reason:
      'only instances are behind links that can be cut (`instance-blackholed`, as root on Linux). Connections to Postgres that say nothing are in [silent-database](../test/api/silent-database.test.ts)',
  },
] as const;
