/**
 * Repairs the inputs that authors get wrong by their schemas alone, as a registry compiles them: `npm run
 * bench:repair [-- --list]`. Exit code 1 when a repair was applied that a person would not accept.
 */
import { parseArgs } from 'node:util';
import { type BrokenInput, brokenInputs, inputSchemas } from '../../test/core/repair/broken-inputs.ts';
import { type Played, playBrokenInput } from '../../test/core/repair/play-broken-input.ts';

const notes = `Each input is wrong in a way that authors of pipelines are, and comes with what a person would send instead.
applied: one operation made it valid, no other did, and it is what a person would send; shown: there is a proposal,
but somebody has to decide; left: nothing is proposed. wrong: applied, and a person would not have. "answered" counts
inputs for which a person knows the answer, and how many of those answers are applied or among what is shown.
transcode is a foreign capability with a closed schema, enums, formats and defaults.
`;

type Row = BrokenInput & Played & { readonly ms: number };

function play(broken: BrokenInput): Row {
  const begin = performance.now();
  const played = playBrokenInput(broken);
  return { ...broken, ...played, ms: performance.now() - begin };
}

function row(name: string, ...cells: readonly (string | number)[]): string {
  return `  ${name.padEnd(16)}${cells.map((cell) => String(cell).padStart(14)).join('')}\n`;
}

function share(part: number, whole: number): string {
  return whole === 0 ? '-' : `${part} (${Math.round((100 * part) / whole)} %)`;
}

function summarize(name: string, rows: readonly Row[]): string {
  const count = (outcome: Row['outcome']): number =>
    rows.filter((one) => one.outcome === outcome && !one.isWrong).length;
  const known = rows.filter(({ answer }) => answer !== null);
  return row(
    name,
    rows.length,
    share(count('applied'), rows.length),
    share(count('shown'), rows.length),
    share(count('left'), rows.length),
    rows.filter(({ isWrong }) => isWrong).length,
    `${known.filter(({ isAnswered }) => isAnswered).length} of ${known.length}`,
  );
}

const { values } = parseArgs({ options: { list: { type: 'boolean', default: false } } });
for (const broken of brokenInputs) playBrokenInput(broken); // compiles what is compiled on first use
const rows = brokenInputs.map(play);
process.stdout.write(`${notes}\n${row('', 'inputs', 'applied', 'shown', 'left', 'wrong', 'answered')}`);
for (const capability of Object.keys(inputSchemas)) {
  process.stdout.write(
    summarize(
      capability,
      rows.filter((one) => one.capability === capability),
    ),
  );
}
const samples = rows.filter(({ capability }) => capability !== 'transcode');
process.stdout.write(`${summarize('the samples', samples)}${summarize('all', rows)}`);
const times = rows.map(({ ms }) => ms).sort((a, b) => a - b);
const [median = 0, longest = 0] = [times[times.length >> 1], times.at(-1)];
process.stdout.write(`\n  time for one: median ${median.toFixed(2)} ms, longest ${longest.toFixed(2)} ms\n`);
if (values.list) {
  process.stdout.write('\n');
  for (const { capability, mistake, outcome, repairs } of rows) {
    const said = repairs.proposals.map(({ description }) => description).join(' | ');
    process.stdout.write(
      `  ${outcome.padEnd(8)} ${capability}, ${mistake}${said === '' ? '' : `: ${said}`}\n`,
    );
  }
}
if (rows.some(({ isWrong }) => isWrong)) process.exitCode = 1;
