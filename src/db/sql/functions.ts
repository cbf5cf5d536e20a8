/**
 * Creates the functions of the database from the `.sql` files of this folder, and again when a text differs from the
 * one in force, which the table `schema_function` notes. Functions of triggers are in `triggers/`: tables name them, so
 * they come before new tables, all others after.
 *
 * Each text begins with the number of the schema that it belongs to: the last migration that it needs, or the next
 * number if no migration goes with its change. Functions that a process of a newer schema has created are left alone.
 * Replacing a function takes no lock that calls wait for.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Db } from '../connect.ts';

export interface FunctionText {
  /** The file, without its ending: `claims`, `triggers/touch-instance`. */
  readonly name: string;
  readonly sql: string;
  /** The number at its beginning. */
  readonly schema: number;
}

/** The texts that a process has, and the newest schema that it knows. */
export interface FunctionSet {
  readonly texts: readonly FunctionText[];
  readonly schema: number;
}

/** @throws Error if the text does not begin with its number */
export function readFunctionText(name: string, sql: string): FunctionText {
  const [, schema] = /^-- schema ([1-9]\d*)\r?\n/.exec(sql) ?? [];
  if (schema === undefined) throw new Error(`${name}.sql does not begin with "-- schema" and a number`);
  return { name, sql, schema: Number(schema) };
}

/** @param lastMigration the number of the last one that this process has */
export function readFunctions(lastMigration: number): FunctionSet {
  const folder = fileURLToPath(new URL('.', import.meta.url));
  const texts = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.replaceAll('\\', '/'))
    .sort()
    .map((file) => readFunctionText(file.slice(0, -4), readFileSync(`${folder}/${file}`, 'utf8')));
  return { texts, schema: Math.max(lastMigration, ...texts.map(({ schema }) => schema)) };
}

interface Note {
  readonly name: string;
  readonly sha256: string;
  readonly schema: number;
}

const table = 'schema_function';

/** Of the functions in force; none: the database has no schema yet. */
async function readNotes(db: Db): Promise<readonly Note[]> {
  return (await db.schema.hasTable(table)) ? db<Note>(table).select() : [];
}

function noteOf({ name, sql }: FunctionText, schema: number): Note {
  return { name, sha256: createHash('sha256').update(sql).digest('hex'), schema };
}

function isOfTrigger({ name }: FunctionText): boolean {
  return name.startsWith('triggers/');
}

/** The texts that differ from those in force; none: a process of a newer schema has created these. */
function findStale(notes: readonly Note[], { texts, schema }: FunctionSet): readonly FunctionText[] {
  if (notes.some((note) => note.schema > schema)) return [];
  const inForce = new Set(notes.map(({ name, sha256 }) => `${name} ${sha256}`));
  return texts.filter((text) => {
    const { name, sha256 } = noteOf(text, schema);
    return !inForce.has(`${name} ${sha256}`);
  });
}

async function createAll(trx: Db, texts: readonly FunctionText[]): Promise<void> {
  await trx.raw('set local check_function_bodies = off'); // they name one another, in any order
  for (const { sql } of texts) await trx.raw(sql.replaceAll('?', '\\?'));
}

/** Creates functions of triggers that the database does not have: later tables name them. */
export async function createTriggerFunctions(db: Db, functions: FunctionSet): Promise<void> {
  const notes = await readNotes(db);
  const known = new Set(notes.map(({ name }) => name));
  const missing = findStale(notes, functions).filter((text) => isOfTrigger(text) && !known.has(text.name));
  if (missing.length > 0) await db.transaction((trx) => createAll(trx, missing));
}

/** Creates the functions whose texts differ from those in force, together. The tables must be there. */
export async function createFunctions(db: Db, functions: FunctionSet): Promise<void> {
  const notes = await readNotes(db);
  const { texts, schema } = functions;
  const stale = findStale(notes, functions);
  const isKnown = notes.length > 0 && notes.every((note) => note.schema >= schema);
  if (stale.length === 0 && isKnown) return;
  await db.transaction(async (trx) => {
    await createAll(trx, stale);
    await trx(table).delete();
    await trx(table).insert(texts.map((text) => noteOf(text, schema)));
  });
}

/** The names of the texts that `createFunctions` would create. */
export async function listStaleFunctions(db: Db, functions: FunctionSet): Promise<readonly string[]> {
  return findStale(await readNotes(db), functions).map(({ name }) => name);
}
