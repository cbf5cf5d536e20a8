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
    ['name', 'fault', 'size', 'expected', 'measured', 'result', 'date'],
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
Each fault below was injected into a [cluster on one machine](production.md#a-cluster-on-one-machine). The table shows the expected result and the measured one. The [failure matrix](failure-matrix.md) explains each case.

## Run the faults

\`\`\`sh
npm run faults -- cluster                                 # all, short; writes the figures and this page
npm run faults -- cluster --only sigterm,worker-killed    # some, and only their figures on the terminal
npm run faults -- cluster --long                          # all, in the long size
\`\`\`

The short size takes about ten minutes on two quiet cores. The command exits with 1 if a fault has another result than expected.

In the short size leases and heartbeats expire after 10 s instead of 30 s (\`LEASE_MS\`, \`HEARTBEAT_TIMEOUT_MS\`), which shortens the waits.
`;

const checked = `
## What each run checks

While the fault lasts, a client submits runs of six steps, and five more after it. Each step costs 0.001 USD. The six steps are one, two in parallel, then three in sequence.

The instances run in the script's own process, which no fault affects. They answer with a hash of their input. Their journal records when each call began and ended.

After every fault the script compares the clients' answers, that journal, and the rows of runs, attempts, budgets and ledger:

| subject | what must hold |
| --- | --- |
| runs | Every accepted submission is a run. Every run has ended, and there are no others. |
| outputs | Every output equals the hash that the script computes without the engine. |
| order | No step began before its dependencies had ended. |
| charges | Each succeeded step has one charge. Each lost call is charged once more, as estimated. Each call at an instance has its own attempt. |
| budgets | At every commit, spent + reserved ≤ limit. At the end nothing is reserved, and budgets, attempts and ledger agree. |
| load | At every commit, no instance has more calls than it accepts. |
| decisions | Each decision, made again from its recorded inputs, is the same. |
| submissions | The list of runs only grew. At least half of the submissions were accepted, and the last five at the first try. |
`;

const streamed = `
## Streams of paid calls

\`npm run faults -- streams\` opens 500 streams of a paid model at once, against one server and a real instance of a wrapped model. The daily limit of the project admits 100 of them: the rate of a call is 0.10 USD, and its tokens cost 0.002 USD. It printed on 2026-11-26:

| fault | admitted | requests to the provider | booked as estimated | spent, USD | reserved at the end, USD |
| --- | --- | --- | --- | --- | --- |
| none | 100 of 500 | 100 | 0 | 0.20 | 0 |
| the server is killed in mid-stream and started again | 100 of 500 | 100 | 100 | 10.00 | 0 |
| five readers never read; Capstan disconnects them | 100 of 500 | 100 | 5 | 0.69 | 0 |
| the provider drops all connections in mid-stream | 100 of 500 | 100 | 0 | 0 | 0 |

Every time, the spent amount equals the sum of all charges and of the ledger. It never exceeds the limit of 10 USD.
`;

export function createFaultsPage(figures: FaultFigures): Page {
  const left = notRun.map(({ fault, reason }) => [fault, reason]);
  return createPage('docs/faults.md', {
    title: 'Faults injected into a cluster',
    source: faultFiguresFile,
    sections: [
      introduction,
      `## Results\n\nMeasured on ${figures.machine}.\n\n${faultTable(figures)}`,
      checked,
      streamed,
      `## Faults that this cluster does not play\n\n${formatTable(['fault', 'reason'], left)}`,
    ],
  });
}
