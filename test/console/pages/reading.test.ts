/** How numbers and times read, and what an address says that leads nowhere. */
import { expect, test } from 'vitest';
import type { Run } from '../../../src/contracts/run.ts';
import { useStudio } from '../support/studio.ts';

const visitors = useStudio();

test('a time is in the zone that the page names, exact on hover and when it is copied', async () => {
  const { capstan, done } = visitors.studio;
  const { body: run } = await capstan.request<Run>('GET', `/v1/runs/${done}`);
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
