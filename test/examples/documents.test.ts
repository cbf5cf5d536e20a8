import type { Run } from '@capstan/core/contracts/run';
import { expect, test } from 'vitest';
import { isLong } from '../support/long.ts';
import { keepExamplePicture } from './pictures.ts';
import { findingsOfSwap, useExample } from './support.ts';

const example = useExample('documents');

interface Read {
  readonly id: string;
  readonly by: string;
  readonly fields: {
    readonly kind: string;
    readonly number: string | null;
    readonly total_usd: number | null;
  };
}

interface Output {
  readonly documents: readonly Read[];
  readonly left: readonly string[];
  readonly spent_usd: number;
}

interface Job {
  readonly ceiling_usd: number;
  readonly documents: readonly { readonly id: string; readonly text: string }[];
}

/** As a person reads them: id, model, kind, number, date, total. */
const truth = `
d01 medium invoice BW-1041 2026-01-05 208
d02 medium invoice TW-77 2026-01-07 216
d03 medium letter - 2026-01-09 -
d04 medium invoice NE-2209 2026-01-12 252
d05 medium credit_note BW-C12 2026-01-14 20.8
d06 large letter - 2026-01-15 -
d07 medium invoice HF-5530 2026-01-19 290
d08 medium invoice SC-318 2026-01-20 319
d09 large invoice OR_4_/_26 2026-01-22 795
d10 medium letter - 2026-01-23 -
d11 medium invoice TW-81 2026-01-26 96
d12 medium invoice NE-2231 2026-01-28 250
d13 large credit_note SC-318-K 2026-01-29 29
d14 medium invoice QS-9004 2026-02-01 120
d15 medium letter - 2026-02-02 -
d16 medium invoice HF-5561 2026-02-03 145
d17 medium credit_note QS-C3 2026-02-04 24
d18 large letter - 2026-02-06 -
d19 medium invoice BW-1077 2026-02-09 286
d20 medium invoice KW-60118 2026-02-10 86.1`;

function lineOf({ id, by, fields }: Read): string {
  const { kind, number, date, total_usd } = fields as Record<string, string | number | null>;
  const facts = [kind, String(number ?? '-').replaceAll(' ', '_'), date, total_usd ?? '-'];
  return [id, by.replace('model.', ''), ...facts].join(' ');
}

async function read(job: Job): Promise<{ readonly run: Run; readonly output: Output }> {
  const run = await example.capstan.ended((await example.start({ ...job })).run_id);
  expect(run.state).toBe('succeeded');
  return { run, output: run.output as unknown as Output };
}

interface Asked {
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
}

const prices = { classify: [0.1, 0.4], extract: [0.6, 2.4], decide: [5, 15] } as const;

/** USD of a step by the tokens of its answers. */
async function priceOf(run: Run, step: keyof typeof prices): Promise<number> {
  const { output } = await example.stepOf(run, step);
  const [input, answer] = prices[step];
  return (output as readonly (Asked | null)[]).reduce(
    (sum, asked) =>
      sum + ((asked?.usage.input_tokens ?? 0) * input + (asked?.usage.output_tokens ?? 0) * answer) / 1e6,
    0,
  );
}

test('three models read all documents, and the large one only the hard cases, at the price of their tokens', async () => {
  const { run, output } = await read(JSON.parse(await example.read('job.json')));
  expect(output.documents.map(lineOf)).toEqual(truth.trim().split('\n'));
  expect(output.left).toEqual([]);
  const [small, medium, large] = [
    await priceOf(run, 'classify'),
    await priceOf(run, 'extract'),
    await priceOf(run, 'decide'),
  ];
  expect(run.cost_usd).toBeCloseTo(small + medium + large, 9);
  expect(output.spent_usd).toBeCloseTo(run.cost_usd, 9);
  const costs = await example.costs();
  expect(costs['model.small']).toBeCloseTo(small, 9);
  expect(costs['model.medium']).toBeCloseTo(medium, 9);
  expect(costs['model.large']).toBeCloseTo(large, 9);
  await keepExamplePicture(example.capstan, {
    path: `/runs/${run.run_id}`,
    name: 'example-documents',
    width: 2000,
  });
});

test.runIf(isLong)(
  'a batch above its ceiling ends within it, and names the documents that are left',
  async () => {
    const job: Job = JSON.parse(await example.read('job.json'));
    const [first, ...others] = job.documents;
    const long = { id: 'd00', text: `${first?.text}\n${'and so on '.repeat(380)}` }; // above the ceiling of its call
    const { run, output } = await read({ ceiling_usd: 0.02, documents: [long, ...job.documents] });
    expect(run.cost_usd).toBeLessThanOrEqual(0.02);
    const all = [long, ...(first === undefined ? [] : [first]), ...others].map(({ id }) => id);
    expect([...output.documents.map(({ id }) => id), ...output.left].sort()).toEqual(all);
    // d00 is too long, the large model is not asked about d13, and sixteen of the twenty-one are affordable.
    expect(output.left).toEqual(['d00', 'd13', 'd16', 'd17', 'd18', 'd19', 'd20']);
    const known = truth.trim().split('\n');
    expect(known.filter((line) => output.documents.map(lineOf).includes(line))).toHaveLength(
      output.documents.length,
    );
  },
);

test('a ceiling of nothing leaves every document, and costs nothing', async () => {
  const job: Job = JSON.parse(await example.read('job.json'));
  const { run, output } = await read({ ...job, ceiling_usd: 0 });
  expect([run.cost_usd, output.documents, output.left]).toEqual([0, [], job.documents.map(({ id }) => id)]);
});

test('the wrap file of an example serves a step of the pipeline instead of a stand-in', async () => {
  expect(await findingsOfSwap(example)).toEqual({ before: [], swapped: ['model.small'], errors: [] });
});
