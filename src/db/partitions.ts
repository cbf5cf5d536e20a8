/**
 * Tables that lie in parts. Parts are made before anything falls into them, and dropped when they have had their
 * time.
 */
import type { Db } from './connect.ts';
import { hasSqlState } from './statements.ts';

/** One part: rows with `from` ≤ value of `column` < `to`. */
export interface TablePart {
  /** Of the table that is the part. */
  readonly name: string;
  readonly column: string;
  readonly from: string;
  readonly to: string;
  /** When what is in it had all happened. */
  readonly endsAt: Date;
}

export type PartedTable = 'event' | 'attempt_choice' | 'ledger_entry';

interface Layout {
  readonly unit: 'week' | 'month';
  readonly column: string;
  /** The least value from a moment on. */
  readonly least: (at: Date) => string;
}

const layouts: Readonly<Record<PartedTable, Layout>> = {
  event: { unit: 'week', column: 'run_id', least: (at) => leastId('run', at) },
  attempt_choice: { unit: 'week', column: 'attempt_id', least: (at) => leastId('att', at) },
  ledger_entry: { unit: 'month', column: 'budget_window', least: dayOf },
};

export const partedTables = Object.keys(layouts) as readonly PartedTable[];

/** Ids of this prefix that were made at a moment, or later, are not below it. */
export function leastId(prefix: string, at: Date): string {
  const time = Math.max(0, at.getTime()).toString(16).padStart(12, '0');
  return `${prefix}_${time.slice(0, 8)}-${time.slice(8)}`;
}

function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

const dayMs = 86_400_000;

/** Weeks begin on Monday, in UTC. */
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

/** The parts that hold what happens from one moment to another, both included. */
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

/** The part of a name; null: it is none of this table's. */
export function partNamed(table: PartedTable, name: string): TablePart | null {
  const [, year, month, day] = /_(\d{4})(\d{2})(\d{2})$/.exec(name) ?? [];
  if (year === undefined) return null;
  const start = new Date(`${year}-${month}-${day}T00:00:00Z`);
  const part = Number.isNaN(start.getTime()) ? undefined : partsBetween(table, start, start)[0];
  return part?.name === name ? part : null;
}

/** What happens when nothing has made parts for as long as this is kept in the default part, and stays there. */
const aheadMs = 35 * 86_400_000;

const lockKey = 7_236_150_445;

/** Waits behind others for a moment only, because what comes next waits behind it. */
async function withLocks<Result>(db: Db, wait: string, work: (trx: Db) => Promise<Result>): Promise<Result> {
  return db.transaction(async (trx) => {
    await trx.raw(`set local lock_timeout = '${wait}'`);
    await trx.raw('select pg_advisory_xact_lock(?)', [lockKey]);
    return work(trx);
  });
}

/** Every claim writes into the table meanwhile. What is not free now is dropped another time. */
const dropWait = '100ms';

/** @returns null: others hold it, a dump for one */
async function unlessHeld<Result>(work: Promise<Result>): Promise<Result | null> {
  return work.catch((error: unknown) => {
    if (hasSqlState(error, 'lock_not_available')) return null;
    throw error;
  });
}

/** Oldest first, without the default one. */
export async function listParts(db: Db, table: PartedTable): Promise<readonly TablePart[]> {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
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

/** Rows that came before their part stay in the default one, and the part is not made. */
async function addPart(trx: Db, table: PartedTable, part: TablePart): Promise<number> {
  if (await hasRows(trx, `${table}_default`, part)) return 0;
  const { name, from, to } = part;
  await trx.raw('create table ?? (like ?? including defaults including constraints)', [name, table]);
  await trx.raw(`alter table ?? attach partition ?? for values from ('${from}') to ('${to}')`, [table, name]);
  return 1;
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

/** Drops a part with all that is in it. False while others hold it. */
export async function dropPart(db: Db, { name }: TablePart): Promise<boolean> {
  const dropping = withLocks(db, dropWait, (trx) => trx.raw('drop table if exists ??', [name]));
  return (await unlessHeld(dropping)) !== null;
}

/** False while others hold it: it could not be dropped, and all that is told of it would be told again. */
export async function isFree(db: Db, { name }: TablePart): Promise<boolean> {
  const locking = withLocks(db, dropWait, (trx) => trx.raw('lock table ?? in access exclusive mode', [name]));
  return (await unlessHeld(locking)) !== null;
}
