import { describe, expect, test } from 'vitest';
import { benches } from '../../scripts/commands/benches.ts';
import { faults } from '../../scripts/commands/faults.ts';
import type { Named } from '../../scripts/commands/named.ts';
import { listDocuments, readDocument } from './documents.ts';

const { scripts } = JSON.parse(readDocument('package.json')) as {
  readonly scripts: Readonly<Record<string, string>>;
};

function findCommands(pattern: RegExp): readonly { readonly file: string; readonly name: string }[] {
  return listDocuments().flatMap((file) =>
    [...readDocument(file).matchAll(pattern)].map(([, name = '']) => ({ file, name })),
  );
}

test('every npm script that a document names exists', () => {
  const named = findCommands(/npm run ([\w:-]+)/g);
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter(({ name }) => scripts[name] === undefined)).toEqual([]);
});

/** The rows of a document about the names of a script, without links. */
function listRows(file: string, script: string): string[] {
  const rows = readDocument(file).matchAll(
    new RegExp(`^\\| \`npm run ${script} -- ([\\w-]+)[^\`]*\` \\| (.*) \\|$`, 'gm'),
  );
  return [...rows].map(
    ([, name = '', says = '']) => `${name}: ${says.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')}`,
  );
}

describe.each([
  ['bench', benches, 'bench/README.md'],
  ['faults', faults, 'CONTRIBUTING.md'],
] as const)('%s', (script, table: Readonly<Record<string, Named>>, file) => {
  test('every name that a document gives it is in its table', () => {
    const named = findCommands(new RegExp(`npm run ${script} (?:--silent )?-- ([^\\s\`]+)`, 'g'));
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter(({ name }) => !Object.hasOwn(table, name))).toEqual([]);
  });

  test(`${file} describes each as the command does`, () => {
    const said = Object.entries(table).map(([name, { says }]) => `${name}: ${says}`);
    expect(listRows(file, script)).toEqual(expect.arrayContaining(said));
  });
});
