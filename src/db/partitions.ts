/** Partitioned tables. A partition is made before any row belongs to it, and dropped after its retention. */

import type { Db } from './connect.ts';
import { takeLock } from './locks.ts';
import { hasSqlState, query } from './statements.ts';

/** One partition: rows with `from` ≤ value of `column` < `to`. */
export interface TablePart {
  /** Name of the partition's table. */
  readonly name: string;
  readonly column: string;
  readonly from: string;
  readonly to: string;
  /** The end of the time span that it covers. */
  readonly endsAt: Date;
}

export type PartedTable = 'event' | 'attempt_choice' | 'ledger_entry';

interface Layout {
  readonly unit: 'week' | 'month';
  readonly column: string;
  /** The smallest value of the column at a point in time. */
  readonly least: (at: Date) => string;
}

const layouts: Readonly<Record<PartedTable, Layout>> = {
  event: { unit: 'week', column: 'run_id', least: (at) => leastId('run', at) },
  attempt_choice: { unit: 'week', column: 'attempt_id', least: (at) => leastId('att', at) },
  ledger_entry: { unit: 'month', column: 'budget_window', least: dayOf },
};

export const partedTables = Object.keys(layouts) as readonly PartedTable[];

/** The lower bound of all ids with this prefix that are made at this time or later. */
export function leastId(prefix: string, at: Date): string {
  const time = Math.max(0, at.getTime()).toString(16).padStart(12, '0');
  return `${prefix}_${time.slice(0, 8)}-${time.slice(8)}`;
}

function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

const dayMs = 86_400_000;

/** Starts of weeks (Monday) and months, in UTC. */
function startOf(unit: Layout['unit'], at: Date): Date {
  const month = Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1);
  if (unit === 'month') return new Date(month);
  const sinceMonday = (at.getUTCDay() + 6) % 7;
  return new Date(Math.floor(at.getTime() / dayMs) * dayMs - sinceMonday * dayMs);
}

function endOf(unit: Layout['unit'], start: Date): Date {
  if (unit === 'week') return new Date(start.getTime() + 7 * dayMs);
  return new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1));
}

/** The partitions that cover the time between two points, both included. */
export function partsBetween(table: PartedTable, from: Date, until: Date): readonly TablePart[] {
  const { unit, column, least } = layouts[table];
  const parts: TablePart[] = [];
  for (let start = startOf(unit, from); start <= until; ) {
    const endsAt = endOf(unit, start);
    const name = `${table}_${dayOf(start).replaceAll('-', '')}`;
    parts.push({ name, column, from: least(start), to: least(endsAt), endsAt });
    start = endsAt;
  }
  return parts;
}

/** The partition of this name; null: it is none of this table. */
export function partNamed(table: PartedTable, name: string): TablePart | null {
  const [, year, month, day] = /_(\d{4})(\d{2})(\d{2})$/.exec(name) ?? [];
  if (year === undefined) return null;
  const start = new Date(`${year}-${month}-${day}T00:00:00Z`);
  const part = Number.isNaN(start.getTime()) ? undefined : partsBetween(table, start, start)[0];
  return part?.name === name ? part : null;
}

/** If no partitions are made for this long, new rows fall into the default partition and stay there. */
const aheadMs = 35 * 86_400_000;

/** Waits for locks only briefly, because later statements queue behind it. */
async function withLocks<Result>(db: Db, wait: string, work: (trx: Db) => Promise<Result>): Promise<Result> {
  return db.transaction(async (trx) => {
    await trx.raw(`set local lock_timeout = '${wait}'`);
    await takeLock(trx, 'partitions');
    return work(trx);
  });
}

/** Every claim writes into the table meanwhile. A partition that is locked now is dropped another time. */
const dropWait = '100ms';

/** @returns null if others hold the lock, for example a dump */
async function unlessHeld<Result>(work: Promise<Result>): Promise<Result | null> {
  return work.catch((error: unknown) => {
    if (hasSqlState(error, 'lock_not_available')) return null;
    throw error;
  });
}

/** Oldest first, without the default partition. */
export async function listParts(db: Db, table: PartedTable): Promise<readonly TablePart[]> {
  const rows = await query<{ name: string }>(db).all(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = ?::regclass order by c.relname`,
    [table],
  );
  return rows.map(({ name }) => partNamed(table, name)).filter((part) => part !== null);
}

async function hasRows(trx: Db, table: string, { column, from, to }: TablePart): Promise<boolean> {
  const row: unknown = await trx(table).where(column, '>=', from).where(column, '<', to).first(trx.raw('1'));
  return row !== undefined;
}

/** Makes no partition if the default partition already holds rows of its range; they stay there. */
async function addPart(trx: Db, table: PartedTable, part: TablePart): Promise<number> {
  if (await hasRows(trx, `${table}_default`, part)) return 0;
  const { name, from, to } = part;
  await trx.raw('create table ?? (like ?? including defaults including constraints)', [name, table]);
  await trx.raw(`alter table ?? attach partition ?? for values from ('${from}') to ('${to}')`, [table, name]);
  return 1;
}

/** Adds those that the table lacks, in the caller's transaction. */
export async function addListedParts(
  trx: Db,
  table: PartedTable,
  parts: readonly TablePart[],
): Promise<void> {
  const known = new Set((await listParts(trx, table)).map(({ name }) => name));
  for (const part of parts) if (!known.has(part.name)) await addPart(trx, table, part);
}

/** @returns how many were made */
export async function addParts(db: Db, now = new Date()): Promise<number> {
  let added = 0;
  for (const table of partedTables) {
    const wanted = partsBetween(table, now, new Date(now.getTime() + aheadMs));
    const findMissing = async (trx: Db) => {
      const known = new Set((await listParts(trx, table)).map(({ name }) => name));
      return wanted.filter(({ name }) => !known.has(name));
    };
    if ((await findMissing(db)).length === 0) continue;
    await withLocks(db, '3s', async (trx) => {
      for (const part of await findMissing(trx)) added += await addPart(trx, table, part);
    });
  }
  return added;
}

/** Drops a partition with its rows. False if others hold a lock on it. */
export async function dropPart(db: Db, { name }: TablePart): Promise<boolean> {
  const dropping = withLocks(db, dropWait, (trx) => trx.raw('drop table if exists ??', [name]));
  return (await unlessHeld(dropping)) !== null;
}

/** False if others hold a lock on it. Then it could not be dropped, and its rows would be exported twice. */
export async function isFree(db: Db, { name }: TablePart): Promise<boolean> {
  const locking = withLocks(db, dropWait, (trx) => trx.raw('lock table ?? in access exclusive mode', [name]));
  return (await unlessHeld(locking)) !== null;
}
