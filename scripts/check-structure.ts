/**
 * Fails where the sources leave the rules that neither the compiler nor the linter keeps. Exceptions stand by name in
 * scripts/structure/exceptions.json; one that is no longer needed fails too, and `--prune` takes it out.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { checkClockClaims } from './structure/check-clock-claims.ts';
import { checkDeclarations, checkFunctionLength, checkParameters } from './structure/check-functions.ts';
import { checkLayers, checkOneWay } from './structure/check-layers.ts';
import { checkOwnerPackages } from './structure/check-owner-packages.ts';
import { checkTypeNames } from './structure/check-type-names.ts';
import { compareWithExceptions, type Exceptions } from './structure/exceptions.ts';
import { readSources, readTests } from './structure/source.ts';

const packageFile = new URL('../package.json', import.meta.url);
const exceptionsFile = new URL('structure/exceptions.json', import.meta.url);

const all = readSources(['src', 'capabilities', 'console', 'test', 'bench', 'scripts', 'docs']);
const product = all.filter(({ file }) => /^(src|capabilities|console)\//.test(file));
const violations = [
  ...checkLayers(product),
  ...checkOneWay(product),
  ...checkFunctionLength(product),
  ...checkParameters(product),
  ...checkTypeNames(product),
  ...checkDeclarations(all),
  ...checkClockClaims(readTests()),
  ...checkOwnerPackages(all, JSON.parse(readFileSync(packageFile, 'utf8'))),
];

const exceptions: Exceptions = JSON.parse(readFileSync(exceptionsFile, 'utf8'));
const { broken, unneeded, needed } = compareWithExceptions(violations, exceptions);
if (process.argv.includes('--prune')) {
  writeFileSync(exceptionsFile, `${JSON.stringify(needed, null, 2)}\n`);
} else {
  for (const line of unneeded)
    console.error(`${line}: no longer needs its exception; npm run check:prune takes it out`);
}
for (const { message } of broken) console.error(message);
if (broken.length > 0 || (unneeded.length > 0 && !process.argv.includes('--prune'))) process.exit(1);
console.log(`${product.length} files keep the rules of structure, ${violations.length} exceptions`);
