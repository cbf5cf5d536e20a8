import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { connectCapstan } from '../engine/capstan-api.ts';
import { watchRunEnds } from '../engine/run-ends.ts';
import type { Stack } from '../engine/stack.ts';
import { createBarePath } from './bare-path.ts';
import { createCapstanPath } from './capstan-path.ts';
import type { PathSide } from './path-side.ts';

export interface ConnectedPaths {
  readonly sides: readonly PathSide[];
  close(): Promise<void>;
}

export async function connectPaths({ capstan, endpoints, temporalAddress }: Stack): Promise<ConnectedPaths> {
  const connection = await Connection.connect({ address: temporalAddress });
  const client = new Client({ connection });
  const database = new pg.Client({ connectionString: capstan.databaseUrl });
  // Where the server ends first, its farewell is no news.
  database.on('error', () => undefined);
  await database.connect();
  const ends = await watchRunEnds(capstan.databaseUrl);
  const api = await connectCapstan(capstan, endpoints);
  const shared = { api, client, ends, database, endpoint: endpoints.echo };
  return {
    sides: [
      await createCapstanPath({ ...shared, variant: 'unset' }),
      await createCapstanPath({ ...shared, variant: 'queued' }),
      createBarePath({ client, endpoint: endpoints.echo }),
    ],
    close: async () => {
      await ends.close();
      await database.end();
      await connection.close();
    },
  };
}
