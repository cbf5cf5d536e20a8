/** The benches, as `npm run bench` lists them. bench/README.md describes each alike. */
import type { Named } from './named.ts';

interface Bench extends Named {
  /** The module measures when it is loaded, and reads its own arguments. */
  readonly load: () => Promise<unknown>;
}

export const benches: Readonly<Record<string, Bench>> = {
  'first-run': {
    says: 'how long a machine without Capstan takes until its first run has succeeded, part by part',
    load: () => import('../../bench/first-run/main.ts'),
  },
  engine: {
    says: 'what a step costs beside bare Temporal, Restate and DBOS',
    load: () => import('../../bench/engine/main.ts'),
  },
  path: {
    says: 'where the time goes from a request to the first call, and through a run of three steps, stage by stage',
    load: () => import('../../bench/path/main.ts'),
  },
  figures: {
    says: 'nothing itself: writes the page what a step costs and the figures of gateways from what three benches have printed',
    load: () => import('../../bench/engine/write-figures.ts'),
  },
  scale: {
    says: 'that runs of 10,000 steps end, how long they take and how long their histories are',
    load: () => import('../../bench/scale/main.ts'),
  },
  growth: {
    says: "what a run leaves in the tables and in Postgres' log, and the processor time that it takes, by part of a cluster",
    load: () => import('../../bench/growth/main.ts'),
  },
  cluster: {
    says: 'how many runs per second clusters of several sizes do on one machine, and what a run costs each part',
    load: () => import('../../bench/cluster/main.ts'),
  },
  soak: {
    says: 'that a cluster under a steady load for hours grows by its tables alone',
    load: () => import('../../bench/soak/main.ts'),
  },
  router: {
    says: 'what a routed call and a model in three protocols cost beside gateways that pass on',
    load: () => import('../../bench/router/main.ts'),
  },
  day: {
    says: 'what a day of 10⁶ paid chat completions adds to the tables and to the cost of a statement',
    load: () => import('../../bench/day/main.ts'),
  },
  leases: {
    says: 'what leased slots change for a thousand routers, simulated beside a claim for each call',
    load: () => import('../../bench/leases/main.ts'),
  },
  http: {
    says: 'what the HTTP pipeline alone costs a call of the exec route, in processor time',
    load: () => import('../../bench/http/main.ts'),
  },
  'hot-path': {
    says: 'where the processor time of a call goes, and what parts of a call and of a submission cost alone',
    load: () => import('../../bench/hot-path/main.ts'),
  },
  statements: {
    says: 'what the statement around every call costs Postgres, in processor time of the backend',
    load: () => import('../../bench/hot-path/statements.ts'),
  },
  escrow: {
    says: 'how much of a paid call budget rows are, which is the most that escrow could save',
    load: () => import('../../bench/hot-path/escrow.ts'),
  },
  fleet: {
    says: 'how long calls wait for models that must be loaded, placed by what is loaded and blindly; how busy a free slot is beside one that costs',
    load: () => import('../../bench/fleet/main.ts'),
  },
  holds: {
    says: 'how much of a budget calls can use whose holds grow, beside reservations of the worst case',
    load: () => import('../../bench/holds/main.ts'),
  },
  console: {
    says: 'what the page weighs, and whether it keeps up with runs of 2,000 and 10,000 steps in a real Chromium',
    load: () => import('../../bench/console/main.ts'),
  },
  telemetry: {
    says: 'what metrics and spans cost a call of the exec route, in processor time',
    load: () => import('../../bench/telemetry/main.ts'),
  },
  expressions: {
    says: 'what a unit of work of an expression takes, for each filter and operator on values of many shapes',
    load: () => import('../../bench/expressions/main.ts'),
  },
  attacks: {
    says: 'that one key cannot keep a server from answering, or make it grow',
    load: () => import('../../bench/attacks/main.ts'),
  },
  readiness: {
    says: 'that `/readyz` answers in time under a full pool, many probes and a silent database',
    load: () => import('../../bench/readiness/main.ts'),
  },
  readers: {
    says: 'that readers of millions of attempts leave the calls of another project alone',
    load: () => import('../../bench/readers/main.ts'),
  },
  calls: {
    says: 'that the list of calls stays quick with each filter in a project of a million calls',
    load: () => import('../../bench/calls/main.ts'),
  },
  up: {
    says: 'how many processes and how much memory five wraps need, as commands and as one file',
    load: () => import('../../bench/up/main.ts'),
  },
  move: {
    says: 'how long the data folder of a stack with 300 runs takes to move to another Postgres and Temporal, and that each run continues there, once',
    load: () => import('../../bench/move/main.ts'),
  },
  learning: {
    says: 'what skills save when failures repeat',
    load: () => import('../../bench/learning/main.ts'),
  },
  schemas: {
    says: 'which real JSON Schemas the registry accepts, what of them it does not enforce, and how long that takes',
    load: () => import('../../bench/schemas/main.ts'),
  },
  repair: {
    says: 'how many mistakes in files of public formats are repaired by their schema alone, and that none is repaired wrongly',
    load: () => import('../../bench/repair/main.ts'),
  },
};
