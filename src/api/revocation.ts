/**
 * Streams, waits and long calls outlive the look at their key. It is looked at again, once for all open requests of a
 * key, and what it does not hold any more is cut off.
 */
import type { ServerResponse } from 'node:http';
import type { AccessService } from '../services/access/access-service.ts';
import type { RequestState } from './middleware/request-state.ts';

/** Between two looks: less than the time within which a revoked key stops. */
const recheckMs = 2_000;

export interface OpenRequests {
  readonly open: ReadonlyMap<ServerResponse, Pick<RequestState, 'key'>>;
  /** Aborted when no more will come. */
  readonly closing: AbortSignal;
}

/** Until all requests have ended after the server has begun to close. */
export function watchRevocations(
  { open, closing }: OpenRequests,
  access: Pick<AccessService, 'isValid'>,
  everyMs = recheckMs,
): void {
  let isLooking = false;
  const timer = setInterval(() => {
    if (closing.aborted && open.size === 0) clearInterval(timer);
    if (isLooking || open.size === 0) return;
    isLooking = true;
    cutRevoked(open, access)
      .catch(() => undefined) // what cannot be looked up now is looked up the next time
      .finally(() => {
        isLooking = false;
      });
  }, everyMs).unref();
}

async function cutRevoked(open: OpenRequests['open'], access: Pick<AccessService, 'isValid'>): Promise<void> {
  const keys = new Set([...open.values()].map(({ key }) => key));
  for (const key of keys) {
    if (key === undefined || (await access.isValid(key))) continue;
    for (const [response, state] of open) if (state.key === key) response.destroy();
  }
}
