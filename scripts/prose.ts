/**
 * Measures the prose of the documentation, also of the pages that are generated from code, and lints it. In code, it
 * lints the words of comments, of titles of tests, and of texts that commands and contracts show. Prints a table of all
 * pages, or of those named, with their findings. `--beside FOLDER` prints the pages of another checkout as well, by the
 * same measure; pages that only one of the two has are in it too. `--check` fails where a page has more findings of a
 * rule than scripts/prose/totals.json allows; `--prune` lowers these numbers to the present ones. Exceptions are listed
 * by name, each with its reason, in scripts/prose/exceptions.json; one that is no longer needed fails too, and
 * `--prune` removes it.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { lintCode, listComments, listTexts, listTitles } from './prose/code.ts';
import { type LintedPage, lintPage } from './prose/lint.ts';
import { compareWithTotals, lowerTotals, type Totals } from './prose/totals.ts';
import { compareWithExceptions, type Exceptions } from './structure/exceptions.ts';
import { readSources, readSql, readTests, type Violation } from './structure/source.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const totalsFile = new URL('prose/totals.json', import.meta.url);
const exceptionsFile = new URL('prose/exceptions.json', import.meta.url);

function listPages(root: string): string[] {
  const inDocs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' });
  return [
    ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'],
    ...readdirSync(join(root, 'packages')).map((name) => `packages/${name}/README.md`),
    ...inDocs
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`)
      .sort(),
  ];
}

async function lintAll(root: string): Promise<LintedPage[]> {
  const linted: LintedPage[] = [];
  for (const file of listPages(root)) {
    const path = join(root, file);
    if (existsSync(path)) linted.push(await lintPage(file, readFileSync(path, 'utf8')));
  }
  return linted;
}

const columns = ['words', 'ease', 'sentence', 'paragraph', 'findings'];

function cellsOf(page: LintedPage | undefined): readonly (string | number)[] {
  if (page === undefined) return columns.map(() => '-');
  const { words, ease, sentence, paragraph, findings } = page;
  return [words, ease, sentence, paragraph, findings.length];
}

/** @param before pages of another checkout, on the left */
function printTable(rows: readonly LintedPage[], before: readonly LintedPage[] | null): void {
  const files = [...new Set([...rows, ...(before ?? [])].map(({ file }) => file))].sort();
  const width = Math.max(...files.map((file) => file.length));
  const print = (name: string, cells: readonly (string | number)[]): void =>
    console.log(name.padEnd(width) + cells.map((cell) => String(cell).padStart(13)).join(''));
  print('', before === null ? columns : [...columns.map((name) => `${name} b.`), ...columns]);
  for (const file of files) {
    const find = (pages: readonly LintedPage[]) => cellsOf(pages.find((page) => page.file === file));
    print(file, [...(before === null ? [] : find(before)), ...find(rows)]);
  }
}

function writeJson(file: URL, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

/** An exception of all of a page names it with an asterisk. */
function nameByException(finding: Violation): Violation {
  const page = finding.subject.replace(/ .*/, ' *');
  return page in (exceptions[finding.rule] ?? {}) ? { ...finding, subject: page } : finding;
}

const { positionals: named, values: options } = parseArgs({
  allowPositionals: true,
  options: { check: { type: 'boolean' }, prune: { type: 'boolean' }, beside: { type: 'string' } },
});
const totals: Totals = JSON.parse(readFileSync(totalsFile, 'utf8'));
const exceptions: Exceptions = JSON.parse(readFileSync(exceptionsFile, 'utf8'));
const folders = ['src', 'packages', 'capabilities', 'examples', 'scripts', 'bench', 'test'];
/** Commands, contracts and errors show their texts to people. */
const shown = /^(?:src\/cli|packages\/core\/src\/(?:contracts|run|errors))\//;
const linted = [
  ...(await lintAll(root)),
  ...readSources(folders).map((source) =>
    lintCode(source, shown.test(source.file) ? [listComments, listTexts] : [listComments]),
  ),
  ...readSql().map((source) => lintCode(source, [listComments])),
  ...readTests().map((source) => lintCode(source, [listComments, listTitles])),
];
const findings = linted.flatMap((page) => page.findings.map(nameByException));
const { broken, unneeded, needed } = compareWithExceptions(findings, exceptions);
const pages = linted.map((page) => ({
  ...page,
  findings: broken.filter(({ subject }) => subject.startsWith(`${page.file} `)),
}));

if (options.prune === true) {
  writeJson(exceptionsFile, needed);
  writeJson(totalsFile, lowerTotals(pages, totals));
} else if (options.check === true) {
  const problems = compareWithTotals(pages, totals);
  for (const line of problems) console.error(line);
  for (const line of unneeded)
    console.error(`${line}: no longer needs its exception; npm run check:prune takes it out`);
  if (problems.length + unneeded.length > 0) process.exit(1);
  console.log(
    `${pages.length} pages and files of code keep the rules of prose, ${broken.length} findings are left to mend`,
  );
} else {
  const unknown = named.filter((name) => !pages.some(({ file }) => file === name));
  if (unknown.length > 0) throw new Error(`no page of the documentation: ${unknown.join(', ')}`);
  const chosen =
    named.length === 0
      ? pages.filter(({ file }) => file.endsWith('.md'))
      : pages.filter(({ file }) => named.includes(file));
  if (named.length > 0)
    for (const { message } of chosen.flatMap((page) => page.findings)) console.log(message);
  printTable(chosen, options.beside === undefined ? null : await lintAll(resolve(options.beside)));
}
