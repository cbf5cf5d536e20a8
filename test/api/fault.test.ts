import { once } from 'node:events';
import { AppError } from '@capstan/core/errors/app-error';
import { expect, test } from 'vitest';
import { translateFault } from '../../src/api/answer.ts';
import { connectDatabase } from '../../src/db/connect.ts';
import { useDatabase } from '../support/database.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

const { url } = useDatabase(1);

test('a database that refuses connections is unavailable, and the request may be sent again', async () => {
  const db = connectDatabase('postgres://nobody@127.0.0.1:9/nothing', 1);
  const fault = await db.raw('select 1').catch(translateFault);
  await db.destroy();
  expect(fault).toMatchObject({ code: 'unavailable', status: 503, retryAfterS: 1 });
});

test('a connection that breaks during a statement is unavailable too', async () => {
  const address = new URL(url);
  const way = await startTcpProxy(address.host);
  address.host = way.address;
  const db = connectDatabase(address.href, 1);
  await db.raw('select 1');
  way.silence(true);
  const isSent = once(db, 'query');
  const fault = db.raw('select 1').catch(translateFault);
  await isSent;
  await way.cut();
  expect(await fault).toMatchObject({ code: 'unavailable', status: 503, retryAfterS: 1 });
  await db.destroy();
});

test('an error of ours stays what it is, any other is internal', () => {
  const ours = new AppError('not_found', 'no run');
  expect(translateFault(ours)).toBe(ours);
  expect(translateFault(new TypeError('x is not a function'))).toMatchObject({ code: 'internal' });
});
