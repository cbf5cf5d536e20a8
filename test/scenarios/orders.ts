/** Calls to be made, with sensible defaults, and what became of them. */
import { newId } from '../../src/parts/ids.ts';
import type { CallOrder, CallReport } from '../support/router-messages.ts';

/** Its key is new; it waits for a slot for long, is tried once, and is not cancelled. */
export function anOrder(order: Pick<CallOrder, 'projectId' | 'capability'> & Partial<CallOrder>): CallOrder {
  return {
    key: newId('call'),
    isKeyed: false,
    isKeyNew: true,
    priority: 'standard',
    ceilingUsd: null,
    timeoutMs: 10_000,
    retryMax: 3,
    maxWaitMs: 20_000,
    patienceMs: 0,
    cancelAfterMs: null,
    input: {},
    ...order,
  };
}

/** As steps are: retried until it is done. */
export const patient = { maxWaitMs: 2_000, patienceMs: 45_000 } as const;

export function manyOrders(
  count: number,
  order: Parameters<typeof anOrder>[0] | ((at: number) => Parameters<typeof anOrder>[0]),
): readonly CallOrder[] {
  return Array.from({ length: count }, (_, at) => anOrder(typeof order === 'function' ? order(at) : order));
}

/** How many ended how: `succeeded`, else the code, else the kind. */
export function countEnds(reports: readonly CallReport[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { kind, code } of reports) {
    const end = kind === 'succeeded' ? kind : (code ?? kind);
    counts[end] = (counts[end] ?? 0) + 1;
  }
  return counts;
}
