import { Connection } from '@temporalio/client';
import { afterAll, expect, test } from 'vitest';
import { disableCallContext } from '../../src/library-internals.ts';

const connection = Connection.lazy({ address: '127.0.0.1:1' });
afterAll(() => connection.close());

test('the deadline of a call is in the storage, is gone once that is disabled, and the next one is set again', async () => {
  const seen: unknown[] = [];
  const look = (): void => {
    seen.push(connection.callContextStorage.getStore()?.deadline);
  };
  await connection.withDeadline(1, async () => {
    look();
    disableCallContext(connection);
    look();
  });
  await connection.withDeadline(2, async () => look());
  expect(seen).toEqual([1, undefined, 2]);
});
