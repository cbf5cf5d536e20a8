/**
 * A server that takes the connection and answers nothing is as good as away: every call has a deadline. It travels in
 * a storage that, once in use, makes Node follow every promise of the process; it is put down when no call is under
 * way. So all calls on one connection are bounded by the same function.
 */
import type { Client, Connection } from '@temporalio/client';
import { disableCallContext } from '../../unsupported/temporal-call-context.ts';

export type Bounded = <Result>(call: () => Promise<Result>, ms?: number) => Promise<Result>;

const answerMs = 10_000;

/** That every client of ours has; the type of `Client` says less. */
export function connectionOf(client: Client): Connection {
  return (client as Client & { readonly connection: Connection }).connection;
}

/** One per connection. */
export function createBoundedCalls(client: Client): Bounded {
  const connection = connectionOf(client);
  let open = 0;
  return async (call, ms = answerMs) => {
    open += 1;
    try {
      return await connection.withDeadline(Date.now() + ms, call);
    } finally {
      open -= 1;
      if (open === 0) disableCallContext(connection);
    }
  };
}
