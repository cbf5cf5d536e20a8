/**
 * Measures the prose of the documentation, also of the pages that are generated from code, and lints it. Prints a table
 * of all pages, or of those named, with their findings. `--check` fails where a page has more findings of a rule than
 * scripts/prose/totals.json allows; `--prune` lowers these numbers to what is there. Exceptions stand by name, each with
 * its reason, in scripts/prose/exceptions.json; one that is no longer needed fails too, and `--prune` takes it out.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type LintedPage, lintPage } from './prose/lint.ts';
import { compareWithTotals, lowerTotals, type Totals } from './prose/totals.ts';
import { compareWithExceptions, type Exceptions } from './structure/exceptions.ts';
import type { Violation } from './structure/source.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const totalsFile = new URL('prose/totals.json', import.meta.url);
const exceptionsFile = new URL('prose/exceptions.json', import.meta.url);

function listPages(): string[] {
  const inDocs = readdirSync(`${root}docs`, { recursive: true, encoding: 'utf8' });
  return [
    ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'],
    ...inDocs
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`)
      .sort(),
  ];
}

function printTable(rows: readonly LintedPage[]): void {
  const width = Math.max(...rows.map(({ file }) => file.length));
  const print = (name: string, cells: readonly (string | number)[]): void =>
    console.log(name.padEnd(width) + cells.map((cell) => String(cell).padStart(11)).join(''));
  print('', ['words', 'ease', 'sentence', 'paragraph', 'findings']);
  for (const { file, words, ease, sentence, paragraph, findings } of rows)
    print(file, [words, ease, sentence, paragraph, findings.length]);
}

function writeJson(file: URL, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

/** An exception of all of a page names it with an asterisk. */
function nameByException(finding: Violation): Violation {
  const page = finding.subject.replace(/ .*/, ' *');
  return page in (exceptions[finding.rule] ?? {}) ? { ...finding, subject: page } : finding;
}

const totals: Totals = JSON.parse(readFileSync(totalsFile, 'utf8'));
const exceptions: Exceptions = JSON.parse(readFileSync(exceptionsFile, 'utf8'));
const linted: LintedPage[] = [];
for (const file of listPages()) linted.push(await lintPage(file, readFileSync(`${root}${file}`, 'utf8')));
const findings = linted.flatMap((page) => page.findings.map(nameByException));
const { broken, unneeded, needed } = compareWithExceptions(findings, exceptions);
const pages = linted.map((page) => ({
  ...page,
  findings: broken.filter(({ subject }) => subject.startsWith(`${page.file} `)),
}));

if (process.argv.includes('--prune')) {
  writeJson(exceptionsFile, needed);
  writeJson(totalsFile, lowerTotals(pages, totals));
} else if (process.argv.includes('--check')) {
  const problems = compareWithTotals(pages, totals);
  for (const line of problems) console.error(line);
  for (const line of unneeded)
    console.error(`${line}: no longer needs its exception; npm run check:prune takes it out`);
  if (problems.length + unneeded.length > 0) process.exit(1);
  console.log(`${pages.length} pages keep the rules of prose, ${broken.length} findings are left to mend`);
} else {
  const named = process.argv.slice(2);
  const unknown = named.filter((name) => !pages.some(({ file }) => file === name));
  if (unknown.length > 0) throw new Error(`no page of the documentation: ${unknown.join(', ')}`);
  const chosen = named.length === 0 ? pages : pages.filter(({ file }) => named.includes(file));
  if (named.length > 0)
    for (const { message } of chosen.flatMap((page) => page.findings)) console.log(message);
  printTable(chosen);
}
