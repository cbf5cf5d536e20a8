import { Client, Connection } from '@temporalio/client';
import { createBareSide } from './bare-side.ts';
import { type CapstanApi, connectCapstan } from './capstan-api.ts';
import { createCapstanSide } from './capstan-side.ts';
import { createDbosSide } from './dbos-side.ts';
import { createRestateSide } from './restate-side.ts';
import { watchRunEnds } from './run-ends.ts';
import type { Side, SideName } from './side.ts';
import type { Stack } from './stack.ts';

export interface ConnectedSides {
  readonly api: CapstanApi;
  /** In the order of the names. */
  readonly sides: readonly Side[];
  close(): Promise<void>;
}

export async function connectSides(stack: Stack, names: readonly SideName[]): Promise<ConnectedSides> {
  const connection = await Connection.connect({ address: stack.temporalAddress });
  const client = new Client({ connection });
  const ends = await watchRunEnds(stack.databaseUrl);
  const dbos = stack.dbos === null ? null : await createDbosSide(stack.dbos);
  const api = await connectCapstan(stack);
  const capstan = { api, projectId: stack.projectId, client, ends };
  const sides: Side[] = [];
  for (const name of names) {
    if (name === 'capstan' || name === 'inline') sides.push(await createCapstanSide(capstan, name));
    if (name === 'bare') sides.push(createBareSide(client, stack.bareTaskQueue));
    if (stack.restate !== null && name === 'restate') sides.push(createRestateSide(stack.restate));
    if (dbos !== null && name === 'dbos') sides.push(dbos);
  }
  return {
    api,
    sides,
    close: async () => {
      await dbos?.close();
      await ends.close();
      await connection.close();
    },
  };
}
