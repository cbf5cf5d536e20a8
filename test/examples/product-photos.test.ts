import { join } from 'node:path';
import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { readPng } from '../../examples/stand-ins/png.ts';
import { isLong } from '../support/long.ts';
import { decide } from '../support/reviews.ts';
import { waitFor } from '../support/wait.ts';
import { keepExamplePicture } from './pictures.ts';
import { findingsOfSwap, useExample } from './support.ts';

const example = useExample('product-photos');

/** Red, green, blue and alpha of one pixel. */
async function pixelOf(reference: string, x: number, y: number): Promise<number[]> {
  const path = join(new URL(example.capstan.mediaUrl).pathname, reference.slice('media://'.length));
  const { width, pixels } = await readPng(path);
  return [...pixels.subarray((y * width + x) * 4, (y * width + x) * 4 + 4)];
}

/** The question that the run asks. */
async function choiceOf({ run_id }: Run): Promise<Review> {
  const { request } = example.capstan;
  const id = await waitFor(`the choice of ${run_id}`, async () => {
    const { body } = await request<Run>('GET', `/v1/runs/${run_id}`);
    expect(body.state, JSON.stringify(body.error)).not.toBe('failed');
    return body.steps.find((step) => step.id === 'choice')?.review_id;
  });
  return (await request<Review>('GET', `/v1/reviews/${id}`)).body;
}

/** The second and the third: both fit on the page. */
async function showVariants(page: Page): Promise<void> {
  for (const _ of ['sand', 'night']) await page.getByRole('button', { name: 'show' }).last().click();
  await page.getByRole('combobox').selectOption('sand');
}

test('a photo is cut out, enlarged and shown in three variants, and the run publishes the chosen one', async () => {
  const started = await example.start(JSON.parse(await example.read('job.json')), ['photo.png']);
  const review = await choiceOf(started);
  const place = `media://${started.job_id}`;
  const variants = ['white', 'sand', 'night'].map((name) => `${place}/${name}.png`);
  expect(review.payload).toMatchObject({ input: { product: 'Blue cup', variants } });
  const { capstan } = example;
  const path = `/runs/${started.run_id}`;
  await keepExamplePicture(capstan, { path, name: 'example-product-photos', height: 500 });
  const question = { path: `/reviews/${review.review_id}`, name: 'example-product-photos-choice' };
  await keepExamplePicture(capstan, { ...question, height: 760, prepare: showVariants });

  // The page has claimed it if a picture was made.
  await decide(capstan, await choiceOf(started), { action: 'output', output: { variant: 'sand' } });
  const run = await capstan.ended(started.run_id);
  expect(run).toMatchObject({
    state: 'succeeded',
    output: { product: 'Blue cup', picture: `${place}/sand.png`, variants },
  });
  const file = join(new URL(example.capstan.mediaUrl).pathname, started.job_id, 'sand.png');
  expect(await readPng(file)).toMatchObject({ width: 320, height: 240 });
  const [, , , alpha] = await pixelOf(`${place}/cutout.png`, 0, 0);
  expect(alpha).toBe(0);
  expect(await pixelOf(`${place}/sand.png`, 0, 0)).toEqual([0xe8, 0xd9, 0xc0, 255]);
  expect(await pixelOf(`${place}/night.png`, 0, 0)).toEqual([0x1d, 0x27, 0x33, 255]);
  const [red = 255, , blue = 0] = await pixelOf(`${place}/sand.png`, 160, 124);
  expect(blue - red).toBeGreaterThan(80); // the cup itself

  expect(run.cost_usd).toBe(0.03);
  expect(await example.costs()).toMatchObject({ 'remove-background': 0.02, enlarge: 0.01 });
});

test.runIf(isLong)('the same photo under another name is neither cut out nor enlarged again', async () => {
  const job = await example.read('job.json');
  const first = await example.start(JSON.parse(job), ['photo.png']);
  await choiceOf(first);
  const spent = await example.costs();
  const again = await example.start({ ...JSON.parse(job), product: 'Blue cup, second shop' }, ['photo.png']);
  await choiceOf(again);
  const runs = [first, again].map(({ run_id }) => run_id);
  for (const run of runs) await example.capstan.request('POST', `/v1/runs/${run}/cancel`, {});
  expect((await example.capstan.ended(again.run_id)).cost_usd).toBe(0);
  expect(await example.costs()).toEqual(spent);
});

test('the wrap files of an example serve the steps of the pipeline instead of the stand-ins', async () => {
  expect(await findingsOfSwap(example)).toEqual({
    before: [],
    swapped: ['backdrop', 'enlarge', 'remove-background'],
    errors: [],
  });
});
