/** Commands that one npm script has by name: `npm run bench -- engine`, `npm run faults -- kills`. */
import { createNameSuggester } from '@capstan/core/nearest-name';

export interface Named {
  /** What it does, in one line. */
  readonly says: string;
}

/** A mistake in the command: its message is enough for the user. */
export class WrongUse extends Error {}

type Table<Entry extends Named> = Readonly<Record<string, Entry>>;

/** Each name with its line, in the order of the table. */
export function listNamed(table: Table<Named>): string {
  const width = Math.max(...Object.keys(table).map((name) => name.length));
  return Object.entries(table)
    .map(([name, { says }]) => `  ${name.padEnd(width)}  ${says}`)
    .join('\n');
}

/** @throws WrongUse with the nearest name, where there is one, and with all names */
export function findNamed<Entry extends Named>(table: Table<Entry>, name: string): Entry {
  const found = Object.hasOwn(table, name) ? table[name] : undefined;
  if (found !== undefined) return found;
  const names = Object.keys(table);
  const suggestion = createNameSuggester(names)(name);
  const asked = suggestion === undefined ? '.' : `; ${suggestion}`;
  throw new WrongUse(`unknown name ${JSON.stringify(name)}${asked} There are ${names.join(', ')}`);
}

/**
 * Runs the entry that the first argument names. Without arguments it prints all of them.
 * @param run gets the arguments after the name
 */
export async function runNamed<Entry extends Named>(
  script: string,
  table: Table<Entry>,
  run: (entry: Entry, words: readonly string[]) => unknown,
): Promise<void> {
  const [name, ...words] = process.argv.slice(2);
  if (name === undefined || name === '--help') {
    console.log(`npm run ${script} -- NAME [options]\n\n${listNamed(table)}`);
    return;
  }
  try {
    await run(findNamed(table, name), words);
  } catch (error) {
    if (!(error instanceof WrongUse)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
