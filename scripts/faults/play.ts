/** How a fault is played: under a load of runs, with the lists watched, and everything judged when all runs have ended. */
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import type { TcpProxy } from '../../test/support/tcp-proxy.ts';
import { waitFor } from '../../test/support/wait.ts';
import type { Cluster } from '../cluster/start-cluster.ts';
import type { Api } from '../package/api.ts';
import { judge } from './checker.ts';
import { type Dag, definitionOf, sixSteps } from './dag.ts';
import { type Fleet, type FleetOptions, startFleet } from './fleet.ts';
import { PatientClient } from './submissions.ts';
import { joinVerdicts, type Verdict } from './verdict.ts';
import { watchLists } from './watch-lists.ts';

export interface Stage {
  readonly cluster: Cluster;
  readonly api: Api;
  /** Between Postgres and all servers and workers. */
  readonly postgres: TcpProxy;
  readonly isLong: boolean;
  /** The settings of the cluster. */
  readonly heartbeatTimeoutMs: number;
  readonly leaseMs: number;
}

export interface Load {
  /** Of the fault; pipeline and capability are named by it. */
  readonly name: string;
  /** Runs, and how many a second. */
  readonly count: number;
  readonly pace: number;
  readonly dag?: Dag;
  readonly fleet?: Omit<FleetOptions, 'capability'>;
  /** How often a client tries; default: twice. */
  readonly tries?: number;
  readonly withFiles?: boolean;
  readonly withCancels?: boolean;
  /** Runs that are submitted when all is over, which no client may have to retry. Default 5. */
  readonly last?: number;
}

export interface Round {
  readonly stage: Stage;
  readonly fleet: Fleet;
  readonly client: PatientClient;
  readonly pipeline: string;
  /** Whether all of the load is submitted. */
  readonly isOver: () => boolean;
}

export interface Fault {
  /** Begins before the load does. */
  readonly disturb: (round: Round) => Promise<Verdict>;
  /** What is looked at when all runs have ended. */
  readonly audit?: (round: Round, db: Db) => Promise<Verdict>;
}

/** One connection that lives as long as it is needed, since Postgres may not. */
export async function withDatabase<Value>(
  { cluster }: Pick<Stage, 'cluster'>,
  use: (db: Db) => Promise<Value>,
): Promise<Value> {
  const db = connectDatabase(cluster.databaseUrl, 1, 120_000);
  return use(db).finally(() => db.destroy());
}

async function awaitEnds(db: Db, pipeline: string, isLong: boolean): Promise<void> {
  const countOpen = async (): Promise<number> => {
    const [row] = await db('run').where({ pipeline, finished_at: null }).count({ open: '*' });
    return Number(row?.open);
  };
  await waitFor(
    `all runs of ${pipeline} to end`,
    async () => (await countOpen()) === 0,
    isLong ? 3_600_000 : 150_000,
  );
}

/** What a lost process held is given back when its leases have ended; what is not by then is a breach. */
async function awaitSettlement(db: Db, { leaseMs }: Stage): Promise<void> {
  const isOpen = async (): Promise<boolean> => {
    const open = await db('attempt').whereIn('state', ['reserved', 'dispatched']).first('attempt_id');
    return open !== undefined;
  };
  const settled = waitFor('no call to be under way', async () => !(await isOpen()), leaseMs + 15_000);
  await settled.catch(() => undefined);
}

async function submitLast({ client }: Round, count: number): Promise<Verdict> {
  const { failed, retried } = client.submissions;
  const before = failed.length + retried.length;
  await client.submit(count, 10);
  const troubles = failed.length + retried.length - before;
  const what = `of the last ${count} submissions ${troubles} were not taken at once`;
  return { figures: {}, breaches: troubles === 0 ? [] : [what] };
}

async function disturbUnderLoad(round: Round, fault: Fault, submitted: () => void): Promise<Verdict> {
  const disturbed = fault.disturb(round);
  await Promise.all([round.client.submitAll().finally(submitted), disturbed]);
  for (const part of round.stage.cluster.parts) await round.stage.cluster.ready(part);
  return disturbed;
}

async function audit(round: Round, load: Load, fault: Fault): Promise<Verdict> {
  const { stage, client, fleet, pipeline } = round;
  const { dag = sixSteps, withCancels = false } = load;
  return withDatabase(stage, async (db) => {
    await awaitEnds(db, pipeline, stage.isLong);
    await awaitSettlement(db, stage);
    const evidence = { api: stage.api, db, fleet, pipeline, dag, withCancels };
    const common = await judge({ ...evidence, submissions: client.submissions });
    const own = await fault.audit?.(round, db);
    for (const table of ['breach', 'trial']) await db(table).del(); // what the next fault does is its own
    return joinVerdicts(own === undefined ? [common] : [own, common]);
  });
}

/** @throws Error where it cannot be judged: a part does not come back, or runs do not end */
export async function playUnderLoad(stage: Stage, load: Load, fault: Fault): Promise<Verdict> {
  const { name, dag = sixSteps, last = 5 } = load;
  const pipeline = `faults-${name}`;
  const fleet = await startFleet(stage.api, { ...load.fleet, capability: pipeline });
  const definition = definitionOf(pipeline, dag, pipeline);
  const client = new PatientClient(stage.api, { definition, ...load });
  let isOver = false;
  const round = { stage, fleet, client, pipeline, isOver: () => isOver };
  const lists = watchLists(stage.api);
  try {
    const disturbed = await disturbUnderLoad(round, fault, () => {
      isOver = true;
    });
    const after = await submitLast(round, last);
    const audited = await audit(round, load, fault);
    const shrunk = { figures: {}, breaches: await lists.stop() };
    return joinVerdicts([disturbed, audited, after, shrunk]);
  } finally {
    await lists.stop();
    await fleet.stop().catch(() => undefined);
  }
}
