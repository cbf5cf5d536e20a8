import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { endWhenSilent } from '../../src/library-internals.ts';
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

test('a silent connection fails its query, and the next one works', async () => {
  await db.raw('select 1');
  expect(proxy.silence()).toBe(1);
  await expect(db.raw('select 1')).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  expect((await db.raw('select 2 as n')).rows).toEqual([{ n: 2 }]);
});

test('a connection is kept while it has no query, and when its answer arrives as the process wakes', async () => {
  let tell = (): void => undefined;
  const ended: Error[] = [];
  const stream = {
    bytesRead: 0,
    setTimeout: (_: number, onSilence: () => void) => {
      tell = onSilence;
    },
    destroy: (error: Error) => ended.push(error),
  };
  const client = { readyForQuery: true, connection: { stream } };
  endWhenSilent(client, 500);
  tell();
  await setImmediate();
  expect(ended).toEqual([]);
  client.readyForQuery = false;
  tell();
  stream.bytesRead = 1;
  await setImmediate();
  expect(ended).toEqual([]);
  tell();
  await setImmediate();
  expect(ended).toHaveLength(1);
});
