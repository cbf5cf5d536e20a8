/** Reads queries again after changes that their data may lack, however many come. */
import type { Query, QueryClient, QueryFilters } from '@tanstack/react-query';

const shortestRestMs = 500;
/** A slow answer is asked for rarely: a query takes at most a fifth of the time. */
const restPerAnswer = 4;

/** Queries that are read or rest: true if a change came since the last request. */
const busy = new WeakMap<Query, boolean>();

async function readUntilQuiet(queries: QueryClient, query: Query): Promise<void> {
  do {
    // The first request is not repeated, and its answer may be older than the change.
    const isFirst = query.state.fetchStatus === 'fetching' && query.state.data === undefined;
    busy.set(query, isFirst);
    const began = performance.now();
    await queries.refetchQueries({ queryKey: query.queryKey, exact: true, type: 'active' });
    const restMs = Math.max(shortestRestMs, restPerAnswer * (performance.now() - began));
    await new Promise((resolve) => setTimeout(resolve, restMs));
  } while (busy.get(query) === true && query.isActive());
  busy.delete(query);
}

/**
 * Reads the matching queries of the page at once, and after a rest again if a change came meanwhile: an answer that is
 * in flight may lack it. Those of other pages become stale.
 */
export function refresh(queries: QueryClient, filters: QueryFilters): void {
  void queries.invalidateQueries({ ...filters, refetchType: 'none' });
  for (const query of queries.getQueryCache().findAll({ ...filters, type: 'active' })) {
    if (busy.has(query)) busy.set(query, true);
    else void readUntilQuiet(queries, query);
  }
}
