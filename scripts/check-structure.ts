/**
 * Fails where the sources leave the rules that neither the compiler nor the linter keeps. Exceptions are listed by name
 * in scripts/structure/exceptions.json; one that is no longer needed fails too, and `--prune` removes it, and lowers
 * the totals of scripts/structure/totals.json to the present ones.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { checkClockClaims } from './structure/check-clock-claims.ts';
import { checkFolders, checkShards, checkTotals, countTotals, type Total } from './structure/check-files.ts';
import { checkDeclarations, checkFunctionLength } from './structure/check-functions.ts';
import { checkLayers, checkOneWay } from './structure/check-layers.ts';
import { checkLocks } from './structure/check-locks.ts';
import { checkOwnerPackages } from './structure/check-owner-packages.ts';
import { checkTypeNames } from './structure/check-type-names.ts';
import { compareWithExceptions, type Exceptions } from './structure/exceptions.ts';
import { checkCircles } from './structure/rooms.ts';
import { readSources, readSql, readTests } from './structure/source.ts';

const packageFile = new URL('../package.json', import.meta.url);
const exceptionsFile = new URL('structure/exceptions.json', import.meta.url);

const totalsFile = new URL('structure/totals.json', import.meta.url);

const all = readSources(['src', 'packages', 'capabilities', 'test', 'bench', 'scripts', 'docs']);
const product = all.filter(({ file }) => /^(src|capabilities|packages\/[^/]+\/(?!test\/))/.test(file));
const counted = [...product, ...readSql()];
const totals: Readonly<Record<string, Total>> = JSON.parse(readFileSync(totalsFile, 'utf8'));
const violations = [
  ...checkShards(product),
  ...checkFolders(product),
  ...checkTotals(counted, totals),
  ...checkLayers(product),
  ...checkOneWay(product),
  ...checkCircles(product),
  ...checkFunctionLength(product),
  ...checkLocks(product),
  ...checkTypeNames(product),
  ...checkDeclarations(all),
  ...checkClockClaims(readTests()),
  ...checkOwnerPackages(all, JSON.parse(readFileSync(packageFile, 'utf8'))),
];

const exceptions: Exceptions = JSON.parse(readFileSync(exceptionsFile, 'utf8'));
const { broken, unneeded, needed } = compareWithExceptions(violations, exceptions);
if (process.argv.includes('--prune')) {
  writeFileSync(exceptionsFile, `${JSON.stringify(needed, null, 2)}\n`);
  writeFileSync(totalsFile, `${JSON.stringify(lowerTotals(), null, 2)}\n`);
} else {
  for (const line of unneeded)
    console.error(`${line}: no longer needs its exception; npm run check:prune takes it out`);
}
for (const { message } of broken) console.error(message);
if (broken.length > 0 || (unneeded.length > 0 && !process.argv.includes('--prune'))) process.exit(1);
const { files, lines } = Object.values(countTotals(counted)).reduce(add);
console.log(`src and packages without the console: ${files} files, ${lines} lines`);
console.log(`${product.length} files keep the rules of structure, ${violations.length} exceptions`);

function add(one: Total, other: Total): Total {
  return { files: one.files + other.files, lines: one.lines + other.lines };
}

/** Not each line is worth a change of the table. */
function roundUp(lines: number): number {
  return 50 * Math.ceil(lines / 50);
}

function lowerTotals(): Record<string, Total> {
  const present = countTotals(counted);
  return Object.fromEntries(
    Object.entries(totals)
      .filter(([folder]) => folder in present)
      .map(([folder, most]) => {
        const { files, lines } = present[folder] ?? most;
        return [folder, { files: Math.min(files, most.files), lines: Math.min(roundUp(lines), most.lines) }];
      }),
  );
}
