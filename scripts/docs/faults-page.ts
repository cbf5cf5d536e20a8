import { type FaultFigures, faultFiguresFile, type PlayedFault } from '../faults/figures.ts';
import { faultNames, faultRows, notRun } from '../faults/table.ts';
import { code, createPage, formatTable, type Page } from './page.ts';

function describeSeen({ figures, breaches }: PlayedFault): string {
  const seen = Object.entries(figures).map(([what, figure]) => `${what}: ${figure}`);
  return [...seen, ...breaches.map((breach) => `**${breach}**`)].join('; ');
}

function describeHeld(played: PlayedFault | undefined): string {
  if (played === undefined) return 'not run';
  return played.breaches.length === 0 ? 'held' : '**not held**';
}

function faultTable({ faults }: FaultFigures): string {
  return formatTable(
    ['', 'fault', 'how much', 'expected', 'seen', '', 'played'],
    faultNames.map((name) => {
      const row = faultRows[name];
      const played = faults[name];
      const size = played?.size ?? 'short';
      return [
        code(name),
        row.fault,
        `${size}: ${row[size]}`,
        row.expected,
        played === undefined ? '' : describeSeen(played),
        describeHeld(played),
        played === undefined ? '' : `${played.at.slice(0, 10)}, ${played.seconds} s`,
      ];
    }),
  );
}

const introduction = `
What was done to a cluster on one machine ([production](production.md#a-cluster-on-one-machine)), and what became of it. Again, in about ten minutes on two quiet cores, or as long as it takes:

\`\`\`sh
npm run faults                                 # all, small; writes the figures and this page
npm run faults -- --only sigterm,worker-killed # some, and only their figures on the terminal
npm run faults -- --long                       # all, as large as the table says
\`\`\`

Exit code 1 when something does not hold. What happens in each case and why is in the [failure matrix](failure-matrix.md).
`;

const checked = `
## What is compared

Runs of six steps that cost 0.001 USD each (one, two side by side, three in sequence) are submitted while the fault lasts, five more when it is over. The instances are in the script's own process, which no fault touches: they answer a hash of what they are given and write down every call, when it began and ended. After every fault, in what clients were told, in that journal, and in the rows of runs, attempts, budgets and ledger:

- every submission that was taken is a run, every run has ended, and there is no other one;
- every output is what the graph of hashes gives, worked out without the engine; no step began before those it depends on had ended;
- one charge for each step that succeeded; every lost call beside it is booked once, as estimated; a call at an instance has an attempt of its own;
- at every commit: spent + reserved ≤ the budget's limit, no instance has more calls than it takes; at the end nothing is reserved, and budgets, attempts and ledger agree;
- every decision, made again from what was known, is the same;
- the list of runs only grew; at least half of the submissions were taken; the last five were taken at the first try.

In short, leases and heartbeats end after 10 s instead of 30 s (\`LEASE_MS\`, \`HEARTBEAT_TIMEOUT_MS\`), so that less time is spent on waiting.
`;

export function createFaultsPage(figures: FaultFigures): Page {
  const left = notRun.map(({ fault, reason }) => [fault, reason]);
  return createPage('docs/faults.md', {
    title: 'Faults, and what became of them',
    source: faultFiguresFile,
    sections: [
      introduction,
      `## What was seen\n\nOn ${figures.machine}.\n\n${faultTable(figures)}`,
      checked,
      `## What is not run here\n\n${formatTable(['fault', 'why'], left)}`,
    ],
  });
}
