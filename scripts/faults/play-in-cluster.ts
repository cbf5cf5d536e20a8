/**
 * `npm run faults -- cluster`: plays faults against a cluster on this machine, all of them or those named by `--only`,
 * small or `--long`, and compares afterwards the answers to clients, the journals of instances, and the content of the
 * database. A whole round writes its figures and the page docs/faults.md; `--json FILE` sends the figures there
 * instead, also those of some faults alone. Exit code 1 when something did not hold.
 */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { describeMachine } from '../../bench/engine/result.ts';
import { stackSignal } from '../../src/cli/shell.ts';
import { createPrinter } from '../../src/dev/progress.ts';
import { type FaultFigures, type PlayedFault, pathOfFaultFigures, readFaultFigures } from './figures.ts';
import { openStage } from './open-stage.ts';
import type { Stage } from './play.ts';
import { findObstacle, plays } from './plays.ts';
import { wordsOf } from './submissions.ts';
import { type FaultName, faultNames, faultRows, isFaultName } from './table.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    long: { type: 'boolean', default: false },
    json: { type: 'string' },
    tarball: { type: 'string' },
  },
});

function readNames(): readonly FaultName[] {
  const names = values.only?.split(',');
  if (names === undefined) return faultNames;
  const unknown = names.filter((name) => !isFaultName(name));
  if (unknown.length === 0) return names.filter(isFaultName);
  console.error(`--only ${unknown.join(',')}: there are ${faultNames.join(', ')}`);
  process.exit(1);
}

/** Whatever goes wrong while it is played is something that does not hold. */
async function playOne(stage: Stage, name: FaultName): Promise<PlayedFault> {
  const at = new Date().toISOString();
  const began = performance.now();
  const size = stage.isLong ? 'long' : 'short';
  console.log(`\n${name}: ${faultRows[name].fault} (${faultRows[name][size]})`);
  const { figures, breaches } = await plays[name](stage).catch((fault) => ({
    figures: {},
    breaches: [wordsOf(fault)],
  }));
  const seconds = Math.round((performance.now() - began) / 1_000);
  for (const [what, figure] of Object.entries(figures)) console.log(`    ${what}: ${figure}`);
  for (const breach of breaches.slice(0, 20)) console.error(`    NOT HELD: ${breach}`);
  console.log(`    ${breaches.length === 0 ? 'held' : 'not held'}, ${seconds} s`);
  return { at, size, seconds, figures, breaches: breaches.slice(0, 20) };
}

/** What was played takes the place of what was known of it. */
async function keep(file: string, played: Readonly<Partial<Record<FaultName, PlayedFault>>>): Promise<void> {
  const known = (() => {
    try {
      return readFaultFigures(file).faults;
    } catch {
      return {};
    }
  })();
  const figures: FaultFigures = { machine: describeMachine(), faults: { ...known, ...played } };
  await writeFile(file, `${JSON.stringify(figures, null, 2)}\n`);
}

async function playAll(stage: Stage, names: readonly FaultName[]): Promise<number> {
  const played: Partial<Record<FaultName, PlayedFault>> = {};
  for (const name of names) {
    const obstacle = findObstacle(name);
    if (obstacle === null) played[name] = await playOne(stage, name);
    else console.log(`\n${name}: not played: ${obstacle}`);
  }
  const file = values.json ?? (values.only === undefined ? pathOfFaultFigures() : undefined);
  if (file !== undefined) await keep(file, played);
  if (file === pathOfFaultFigures()) await import('../generate-docs.ts');
  return Object.values(played).filter(({ breaches }) => breaches.length > 0).length;
}

const names = readNames();
const signal = stackSignal();
const printer = createPrinter(process.stdout);
let stage: Stage | undefined;
try {
  const { long: isLong, tarball } = values;
  stage = await openStage({ isLong, tarball, signal, report: printer.report });
  const broken = await playAll(stage, names);
  console.log(
    broken === 0 ? '\nall of it held' : `\n${broken} of ${names.length} faults were not survived as expected`,
  );
  process.exitCode = broken === 0 ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await stage?.cluster.stop();
  printer.close();
}
process.exit();
