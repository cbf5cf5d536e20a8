/**
 * Waits for ends of runs by one small statement every few milliseconds for all of them. The API's own ways to wait
 * go through an event feed: work that a run does not need.
 */
import pg from 'pg';

export interface RunEnd {
  readonly projectId: string;
  readonly pipeline: string;
  readonly state: string;
  /** Unix time by the database's clock, which is this machine's. */
  readonly finishedAtMs: number;
  /** Outputs of the last steps by id. */
  readonly output: Readonly<Record<string, unknown>> | null;
}

export interface RunEnds {
  wait(runId: string): Promise<RunEnd>;
  close(): Promise<void>;
}

interface Row extends RunEnd {
  readonly run_id: string;
}

const intervalMs = 20;
const statement = {
  name: 'ended',
  text: `select run_id, project_id as "projectId", pipeline, state, output, extract(epoch from finished_at)::double precision * 1000 as "finishedAtMs"
    from run where run_id = any ($1) and finished_at is not null`,
};

interface Waiter {
  readonly resolve: (end: RunEnd) => void;
  readonly reject: (error: unknown) => void;
}

export async function watchRunEnds(databaseUrl: string): Promise<RunEnds> {
  const client = new pg.Client({ connectionString: databaseUrl });
  // Where the server ends first, its farewell is no news.
  client.on('error', () => undefined);
  await client.connect();
  // The table grows while its statistics show it as small; reading all of it would be billed to Capstan.
  await client.query('set enable_seqscan = off');
  const waiting = new Map<string, Waiter>();
  let isScheduled = false;

  const poll = async (): Promise<void> => {
    const { rows } = await client.query<Row>({ ...statement, values: [[...waiting.keys()]] });
    for (const { run_id, ...end } of rows) {
      waiting.get(run_id)?.resolve(end);
      waiting.delete(run_id);
    }
  };

  const fail = (error: unknown): void => {
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };

  const schedule = (): void => {
    if (isScheduled) return;
    isScheduled = true;
    setTimeout(async () => {
      await poll().catch(fail);
      isScheduled = false;
      if (waiting.size > 0) schedule();
    }, intervalMs);
  };

  return {
    wait: (runId) =>
      new Promise((resolve, reject) => {
        waiting.set(runId, { resolve, reject });
        schedule();
      }),
    close: () => client.end(),
  };
}
