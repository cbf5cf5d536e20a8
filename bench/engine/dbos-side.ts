/**
 * Asks the DBOS application for runs; it answers with the result. The end is the `completed_at` that DBOS has
 * recorded, so that the way back to the client does not count; the way there does.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { Agent } from 'undici';
import { checkResult } from './check-result.ts';
import type { DbosAddresses } from './dbos-process.ts';
import type { Shape } from './shapes.ts';
import type { Side } from './side.ts';

export interface DbosSide extends Side {
  close(): Promise<void>;
}

const statement = {
  name: 'completed',
  text: 'select completed_at::float8 as "completedAt" from dbos.workflow_status where workflow_uuid = $1',
};

export async function createDbosSide({ url, databaseUrl }: DbosAddresses): Promise<DbosSide> {
  const agent = new Agent({ connections: 64, pipelining: 1 });
  const database = new pg.Client({ connectionString: databaseUrl });
  // Where the server ends first, its farewell is no news.
  database.on('error', () => undefined);
  await database.connect();

  /** @returns the id of the workflow */
  const run = async (shape: Shape, text: string): Promise<string> => {
    const id = randomUUID();
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ id, shape, text });
    const answer = await agent.request({ origin: url, path: '/runs', method: 'POST', headers, body });
    if (answer.statusCode !== 200) throw new Error(`DBOS: ${answer.statusCode} ${await answer.body.text()}`);
    checkResult(shape, text, await answer.body.json());
    return id;
  };

  const readEnd = async (id: string): Promise<number> => {
    const { rows } = await database.query<{ completedAt: number | null }>({ ...statement, values: [id] });
    const at = rows[0]?.completedAt;
    if (typeof at === 'number') return at;
    throw new Error(`DBOS has no end of ${id}`);
  };

  return {
    name: 'dbos',
    parts: ['Postgres', 'DBOS application', 'capability'],
    run: async (shape, text) => void (await run(shape, text)),
    time: async (shape, text) => {
      const startedAt = Date.now();
      return (await readEnd(await run(shape, text))) - startedAt;
    },
    countHistory: async () => null,
    capstan: null,
    close: () => database.end(),
  };
}
