import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { endWhenSilent } from '../../src/unsupported.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

let proxy: TcpProxy;
let db: Db;
beforeAll(async () => {
  const url = new URL(inject('databaseUrl'));
  proxy = await startTcpProxy(url.host);
  url.host = proxy.address;
  db = connectDatabase(url.href, 1, 500);
});
afterAll(async () => {
  await db.destroy();
  await proxy.cut();
});

test('a connection that says nothing any more fails what waits for it, and the next one works', async () => {
  await db.raw('select 1');
  expect(proxy.silence()).toBe(1);
  await expect(db.raw('select 1')).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  expect((await db.raw('select 2 as n')).rows).toEqual([{ n: 2 }]);
});

test('a connection that nobody asks anything is left alone', () => {
  let tell = (): void => undefined;
  const ended: Error[] = [];
  const stream = {
    setTimeout: (_: number, onSilence: () => void) => {
      tell = onSilence;
    },
    destroy: (error: Error) => ended.push(error),
  };
  const client = { readyForQuery: true, connection: { stream } };
  endWhenSilent(client, 500);
  tell();
  expect(ended).toEqual([]);
  client.readyForQuery = false;
  tell();
  expect(ended).toHaveLength(1);
});
