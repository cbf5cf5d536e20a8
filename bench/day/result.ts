/** A day in numbers: what a call adds, what the statements cost as the tables grow, what the retention takes away. */
import type { Holding, Work } from './books.ts';

/** A tenth of the time. */
export interface Stretch {
  readonly calls: number;
  readonly work: Work;
  /** Milliseconds by part. */
  readonly processorMs: ReadonlyMap<string, number>;
}

/** A moment after the day, when the rows of some tables are past their retention. */
export interface Purged {
  readonly afterDays: number;
  readonly rows: Readonly<Record<string, number>>;
  readonly holdings: readonly Holding[];
}

export interface Day {
  readonly calls: number;
  readonly minutes: number;
  readonly before: readonly Holding[];
  readonly after: readonly Holding[];
  readonly stretches: readonly Stretch[];
  /** µs of the money statement itself, before and after. */
  readonly statementUs: readonly [before: number, after: number];
  readonly purged: readonly Purged[];
  /** Days for which the rows of a table are kept. */
  readonly keptDays: Readonly<Record<string, number>>;
}

const callsOfDay = 1_000_000;
const megabyte = 1_000_000;
/** Smaller sums are together. */
const leastBytes = 1;

interface Growth {
  readonly name: string;
  readonly isIndex: boolean;
  readonly bytes: number;
  readonly rows: number;
}

/** Per call. */
function growthOf({ before, after, calls }: Day): readonly Growth[] {
  const known = new Map(before.map((holding) => [`${holding.isIndex} ${holding.name}`, holding]));
  return after
    .map(({ name, isIndex, bytes, rows }) => {
      const was = known.get(`${isIndex} ${name}`);
      return {
        name,
        isIndex,
        bytes: (bytes - (was?.bytes ?? 0)) / calls,
        rows: (rows - (was?.rows ?? 0)) / calls,
      };
    })
    .sort((a, b) => b.bytes - a.bytes);
}

function sumOf<Item>(list: readonly Item[], value: (item: Item) => number): number {
  return list.reduce((sum, item) => sum + value(item), 0);
}

function line(first: string, ...cells: readonly string[]): string {
  return (first.padEnd(52) + cells.map((cell) => cell.padStart(14)).join('')).trimEnd();
}

function describeGrowth(day: Day): string[] {
  const growths = growthOf(day);
  const shown = growths.filter(({ bytes, rows }) => bytes >= leastBytes || rows > 0.01);
  return [
    line('', 'rows a call', 'bytes a call', 'MB of 10⁶'),
    ...[...shown, { name: 'all', isIndex: true, bytes: sumOf(growths, ({ bytes }) => bytes), rows: 0 }].map(
      ({ name, isIndex, bytes, rows }) =>
        line(
          isIndex && name !== 'all' ? `  ${name}` : name,
          isIndex ? '' : rows.toFixed(2),
          bytes.toFixed(0),
          ((bytes * callsOfDay) / megabyte).toFixed(0),
        ),
    ),
  ];
}

function describeStretches({ stretches, statementUs, minutes }: Day): string[] {
  const parts = [...(stretches[0]?.processorMs.keys() ?? [])];
  return [
    line(
      'each tenth of the time, a call',
      'transactions',
      'blocks',
      'log, bytes',
      ...parts.map((part) => `${part}, µs`),
    ),
    ...stretches.map(({ calls, work, processorMs }, at) =>
      line(
        `${((minutes * at) / stretches.length).toFixed(1)} to ${((minutes * (at + 1)) / stretches.length).toFixed(1)} min`,
        (work.transactions / calls).toFixed(2),
        (work.blocks / calls).toFixed(0),
        (work.logBytes / calls).toFixed(0),
        ...parts.map((part) => (((processorMs.get(part) ?? 0) * 1_000) / calls).toFixed(0)),
      ),
    ),
    line('the money statement alone, µs', ...statementUs.map((us) => us.toFixed(0))),
  ];
}

/** With its indexes; an index is named after its table. */
function bytesOf(holdings: readonly Holding[]): number {
  return sumOf(holdings, ({ bytes }) => bytes);
}

function describePurged({ purged, after }: Day): string[] {
  return [
    line('what the retention removes', 'days later', 'rows', 'MB left'),
    line('', '0', '', (bytesOf(after) / megabyte).toFixed(1)),
    ...purged.flatMap(({ afterDays, rows, holdings }) => {
      const removed = Object.entries(rows).filter(([, count]) => count > 0);
      return removed.map(([table, count], at) =>
        line(
          table,
          String(afterDays),
          String(count),
          at === removed.length - 1 ? (bytesOf(holdings) / megabyte).toFixed(1) : '',
        ),
      );
    }),
  ];
}

/** The table that an index belongs to, of those that have a retention. */
function tableOf(name: string, tables: readonly string[]): string | undefined {
  return tables.filter((table) => name.startsWith(table)).sort((a, b) => b.length - a.length)[0];
}

function describeDisk(day: Day): string[] {
  const tables = Object.keys(day.keptDays);
  const ofTable = new Map<string, number>();
  for (const { name, bytes } of growthOf(day)) {
    const table = tableOf(name, tables) ?? 'others';
    ofTable.set(table, (ofTable.get(table) ?? 0) + (bytes * callsOfDay) / megabyte);
  }
  const rows = tables.map((table) => {
    const megabytes = ofTable.get(table) ?? 0;
    const days = day.keptDays[table] ?? 0;
    return { table, megabytes, days, gigabytes: (megabytes * days) / 1_000 };
  });
  return [
    line('the disk of days with 10⁶ calls', 'MB a day', 'days kept', 'GB in the end'),
    ...rows.map(({ table, megabytes, days, gigabytes }) =>
      line(table, megabytes.toFixed(0), String(days), gigabytes.toFixed(0)),
    ),
    line(
      'all',
      sumOf(rows, ({ megabytes }) => megabytes).toFixed(0),
      '',
      sumOf(rows, ({ gigabytes }) => gigabytes).toFixed(0),
    ),
  ];
}

export function toTable(day: Day, machine: string): string {
  return [
    `${new Date().toISOString()}  ${machine}  ${day.calls} calls in ${day.minutes} minutes`,
    '',
    ...describeGrowth(day),
    '',
    ...describeStretches(day),
    '',
    ...describePurged(day),
    '',
    ...describeDisk(day),
  ].join('\n');
}
