/**
 * Tables that grow with all that happens lie in parts by time. Which part a row belongs to is said by what it is found
 * by anyway, an id, which begins with its time, or a day. What belongs to no part is in the default one. Choices and
 * ledger go by whole parts where all in one is old, because deleting their rows would write as much as they are. Events
 * go with their runs, row by row; a week of theirs is dropped, empty by then, when no run is left of it.
 */

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
