/**
 * Plays calls on fleets under the real `choose` and under other policies: `npm run bench:simulator [-- --quick]`.
 * Exit code 1 when a bar is missed.
 */
import { parseArgs } from 'node:util';
import { fleets, loads } from './fleets.ts';
import { type Effort, isMet, summarize } from './summary.ts';
import { toTable } from './table.ts';

const notes = `Waiting is from arrival to the start of a call, in mean service times; "grows" = calls pile up without end.
One line is the ideal: it knows the true speeds, and nobody waits while anybody is idle. It bounds waiting where
all are equally fast; where they are not, or where money is to be saved, somebody may wait for a better instance.
"lowest cost" stays with the cheapest and keeps up only if those can carry all; "with room" goes on to the next.
Batch stays on what is free as long as it takes, and so grows where that is too little. Capstan learns speeds from
the calls it makes. Claims are known at once, instances do not fail, and a call waits until it is served: in the
product it is told to come back after 2 s.
`;

const full: Effort = { seeds: [1, 2, 3, 4], calls: 15_000 };
const quick: Effort = { seeds: [1, 2], calls: 5_000 };

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const effort = values.quick ? quick : full;
process.stdout.write(`${notes}\n`);
for (const fleet of fleets) {
  for (const load of loads) {
    const summary = summarize(fleet, load, effort);
    process.stdout.write(`${toTable(summary)}\n`);
    if (!summary.checks.every(isMet)) process.exitCode = 1;
  }
}
