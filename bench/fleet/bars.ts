/** What placing by what is loaded has to show, beside a choice that knows nothing of it. */
import type { FreeFirst } from './free-first.ts';
import type { Live } from './live.ts';
import type { ShortWork } from './short-work.ts';
import { type Played, percentile } from './simulate.ts';

function p95({ waits }: Played): number {
  return percentile(waits, 0.95);
}

/** Where requests come from: a drawn trace has bursts of models, but no hours in which more work comes. */
export type Source = 'trace' | 'drawn';

/** Of the 95th percentile of waiting, beside the blind choice, by the number of instances. */
const mostWaiting: Readonly<Record<Source, Readonly<Record<number, number>>>> = {
  trace: { 32: 0.2, 16: 0.5, 4: 0.8 },
  drawn: { 32: 0.2, 16: 0.8, 4: 0.8 },
};

interface Pair {
  readonly name: string;
  readonly row: Played;
  readonly blind: Played;
  readonly source: Source;
}

function ofPair({ name, row, blind, source }: Pair): string[] {
  const { instances, reports } = row.setting;
  if (reports === 'wrong') return p95(row) > 1.05 * p95(blind) ? [`${name}: no worse than blind`] : [];
  const most = mostWaiting[source][instances] ?? 1;
  const bars: readonly (readonly [what: string, isMet: boolean])[] = [
    [`waits at most ${most} times as long`, p95(row) <= most * p95(blind)],
    ['half of the cold calls', row.cold <= 0.5 * blind.cold],
    ['no more time of instances', row.busyS <= blind.busyS],
  ];
  return bars.flatMap(([what, isMet]) => (isMet ? [] : [`${name}: ${what}`]));
}

/** No model waits longer than any does with the blind choice. */
function starved({ name, row, blind }: Pair): string[] {
  return row.worstModelS > blind.worstModelS * 1.6 ? [`${name}: a model starves`] : [];
}

export function describeLoad(load: Played['setting']['load']): string {
  return load === null ? 'all at once' : String(load);
}

function nameOf({ setting: { instances, load, choice, reports } }: Played): string {
  return `${instances} instances, load ${describeLoad(load)}, ${choice}, reports ${reports}`;
}

function findMissed(rows: readonly Played[], part: string, source: Source): string[] {
  return rows.flatMap((row) => {
    const { instances } = row.setting;
    const isBlind = ({ setting }: Played): boolean =>
      setting.choice === 'blind' && setting.instances === instances;
    const blind = rows.find(isBlind);
    if (blind === undefined || blind === row) return [];
    const pair = { name: `${nameOf(row)}, ${part}`, row, blind, source };
    return [...ofPair(pair), ...starved(pair)];
  });
}

/** @returns a line for each bar that is missed. @param rows several seeds of each setting are one row */
export function findMissedBars(rows: readonly Played[], live: readonly Live[], source: Source): string[] {
  return [
    ...findMissed(rows, 'simulated', source),
    ...findMissed(live, 'live', source),
    ...live
      .filter(({ twice }) => twice > 0)
      .map((row) => `${nameOf(row)}, live: ${row.twice} calls on a box that had one`),
  ];
}

export function findMissedFree({ busy, paid, withoutResult }: FreeFirst): string[] {
  return [
    ...(busy < 0.9 ? ['the free slot is busy for nine tenths of the time'] : []),
    ...(paid > 0 ? ['no call of a batch costs while it may wait'] : []),
    ...(withoutResult > 0 ? ['no call is called without a result'] : []),
  ];
}

/** @param rows blind, then by what is loaded */
export function findMissedShort([blind, resident]: readonly ShortWork[]): string[] {
  if (blind === undefined || resident === undefined) return [];
  return [
    ...(resident.loads > blind.loads / 3 ? ['short work: a third of the loads'] : []),
    ...(resident.tookS > blind.tookS / 2 ? ['short work: half of the time'] : []),
  ];
}
