/** How numbers and times read, and the text of an address that leads nowhere. */

import type { Run } from '@capstan/core/contracts/run';
import { expect, test } from 'vitest';
import { useStudio } from '../support/studio.ts';

const visitors = useStudio();

test('a time is in the zone that the page names, exact on hover and when it is copied', async () => {
  const { capstan, done } = visitors.studio;
  const run = await capstan.read<Run>(`/v1/runs/${done}`);
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go(`/runs/${done}`);
  await page.getByText('Times in UTC').waitFor();
  const started = page.locator('main time').first();
  const at = run.started_at ?? '';
  expect(await started.getAttribute('datetime')).toBe(at);
  const day = new Date(at).toLocaleDateString('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });
  expect(await started.getAttribute('title')).toBe(`${day}, ${at.slice(11, 23)} UTC`);
  await page.evaluate(
    `document.addEventListener('copy', (event) => { copied = event.clipboardData.getData('text/plain'); }); var copied = '';`,
  );
  await started.click();
  await page.keyboard.press('Control+c');
  expect(await page.evaluate('copied')).toBe(at);
  opened.expectQuiet();
  await opened.close();
});

test('a date reads the same in the chart, the ledger and the timeline', async () => {
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/runs');
  const day = String.raw`\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d`;
  const chart = page.locator('section', { has: page.getByRole('img', { name: /^Runs by time/ }) }).first();
  await chart
    .getByText(new RegExp(`^${day}$`))
    .nth(1)
    .waitFor();
  await opened.go('/costs/ledger');
  await page.locator('main time').first().waitFor();
  expect(await page.locator('main time').first().getAttribute('title')).toMatch(new RegExp(`^${day}`));
  await opened.go(`/runs/${visitors.studio.done}?view=timeline`);
  await page.getByRole('img', { name: new RegExp(`^Time since ${day}`) }).waitFor();
  opened.expectQuiet();
  await opened.close();
});

test('a missing object is named once, with links to the others, and is not requested again', async () => {
  const opened = await visitors.visit({}, /404/);
  const { page } = opened;
  const asked: string[] = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (/run_nowhere|nothing/.test(pathname) && pathname.startsWith('/v1/')) asked.push(pathname);
  });
  await opened.go('/runs/run_nowhere');
  await page.getByRole('heading', { name: 'Run not found' }).waitFor();
  await page.getByText('There is no run run_nowhere').waitFor();
  expect(await page.getByRole('button', { name: /again/ }).count()).toBe(0);
  expect(asked.filter((path) => path === '/v1/runs/run_nowhere')).toHaveLength(1);
  expect(new Set(asked).size).toBe(asked.length);
  expect(await opened.axe()).toEqual([]);
  await page.getByRole('link', { name: 'All runs' }).click();
  await opened.arrive(/\/ui\/runs$/);
  for (const [path, title] of [
    ['/pipelines/nothing', 'Pipeline not found'],
    ['/nothing/at/all', 'Page not found'],
  ] as const) {
    await opened.go(path);
    await page.getByRole('heading', { name: title }).waitFor();
    expect(await opened.axe()).toEqual([]);
  }
  await opened.go('/pipelines/new');
  await opened.arrive(/\/ui\/pipelines\/new\/edit$/);
  await page.getByRole('heading', { name: 'New pipeline' }).waitFor();
  opened.expectQuiet();
  await opened.close();
});
