/** The request of a list of calls. */
import type { CallsSearch } from '../searches.ts';

/** A day stands for its beginning, or for its end, in the zone of the browser. */
function toInstant(text: string, isEnd: boolean): string {
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(text);
  const at = new Date(isDay ? `${text}T00:00:00` : text);
  if (isDay && isEnd) at.setDate(at.getDate() + 1);
  return Number.isNaN(at.getTime()) ? text : at.toISOString();
}

export function toCallsPath(search: CallsSearch, rest: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(rest);
  const { since, until, direct, ...texts } = search;
  for (const [name, value] of Object.entries(texts)) if (value !== undefined) query.set(name, value);
  if (since !== undefined) query.set('since', toInstant(since, false));
  if (until !== undefined) query.set('until', toInstant(until, true));
  if (direct !== undefined) query.set('direct', direct);
  return `/v1/calls?${query}`;
}

export function countFilters(search: CallsSearch): number {
  return Object.values(search).filter((value) => value !== undefined).length;
}

/** The name of the folded filters, with the number of those that are set. */
export function describeFilters(search: CallsSearch): string {
  const count = countFilters(search);
  return count === 0 ? 'Filters' : `Filters, ${count} set`;
}
