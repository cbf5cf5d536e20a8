/**
 * `npm run test:mutants`: whether tests notice what is wrong. `--core`: small mutants of the pure rules; `--faults`:
 * faults made by hand in SQL functions and services. `--only core/money,PART OF A NAME`, `--sample N` mutants of each
 * folder (`--seed N`), `--json FILE` writes what became of each mutant, `--beside FILE` compares with such a file. Exit
 * code 1 when a folder is below its least score, a survivor is not in accepted.json or is listed there without need, a
 * mutant is missed that was caught then, or a fault is missed.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { judgeSurvivors } from './mutants/accepted.ts';
import { coreFolders, sourcesOf, type Trial, tryCoreMutants } from './mutants/core-mutants.ts';
import { playFaults } from './mutants/play-faults.ts';
import { compareTrials, describeJudged, describeScores, scoresOf } from './mutants/report.ts';

const { values } = parseArgs({
  options: {
    core: { type: 'boolean', default: false },
    faults: { type: 'boolean', default: false },
    only: { type: 'string' },
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    json: { type: 'string' },
    beside: { type: 'string' },
  },
});

const only = values.only?.split(',') ?? [];
const isAny = !values.core && !values.faults;
const folders = coreFolders.filter((folder) => only.length === 0 || only.includes(folder));
const names = only.filter((name) => !name.startsWith('core/'));

async function testCore(): Promise<boolean> {
  const sample = values.sample === undefined ? null : Number(values.sample);
  const trials = await tryCoreMutants({ folders, sample, seed: Number(values.seed) });
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(trials, null, 1)}\n`);
  const scores = scoresOf(trials);
  const judged = judgeSurvivors(trials, sample === null ? folders.map(sourcesOf) : []);
  console.log(describeJudged(judged));
  console.log(describeScores(scores));
  const missed =
    values.beside === undefined
      ? []
      : compareTrials(JSON.parse(readFileSync(values.beside, 'utf8')) as Trial[], trials);
  if (values.beside !== undefined) {
    console.log(`caught in ${values.beside} and missed now: ${missed.length}`);
    for (const trial of missed) console.error(`  ${trial.file}:${trial.line} ${trial.label}`);
  }
  const isJudged = judged.missed.length === 0 && judged.idle.length === 0;
  return isJudged && missed.length === 0 && scores.every(({ isEnough }) => isEnough);
}

async function testFaults(): Promise<boolean> {
  const played = await playFaults(names.length === 0 ? null : names);
  const caught = played.filter(({ by }) => by !== null).length;
  console.log(`faults made by hand: ${caught} of ${played.length} caught`);
  return caught === played.length;
}

const ends = [
  (isAny || values.core) && folders.length > 0 ? await testCore() : true,
  (isAny || values.faults) && (only.length === 0 || names.length > 0) ? await testFaults() : true,
];
process.exitCode = ends.every(Boolean) ? 0 : 1;
