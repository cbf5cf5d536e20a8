/** A server that dies under open pages, and a session that ends under one. */

import type { Run } from '@capstan/core/contracts/run';
import { beforeAll, expect, test } from 'vitest';
import { useMortalCapstan } from '../../../../test/support/shared-capstan.ts';
import { type OpenPage, openBeside, openPage, signIn } from '../support/browser.ts';
import { provideConsole } from '../support/built-console.ts';
import { askQuestion, shareBrowser } from '../support/studio.ts';

const capstan = useMortalCapstan();
beforeAll(async () => {
  await provideConsole();
});

/** In a tab of its own window, or beside another one. */
async function visit(path: string, expected: RegExp, beside?: OpenPage): Promise<OpenPage> {
  const opened =
    beside === undefined
      ? await openPage(await shareBrowser(), capstan.url, {}, expected)
      : await openBeside(beside, capstan.url, expected);
  if (beside === undefined) await signIn(opened, capstan.url, capstan.key);
  await opened.go(path);
  await opened.page.getByText('live', { exact: true }).waitFor();
  return opened;
}

test('every open page, in whichever window, reports a killed server, keeps what is written, and is live again when it is back', async () => {
  const { run, review } = await askQuestion(capstan);
  const paths = [`/runs/${run}`, `/reviews/${review}`, '/runs'];
  const expected = /ERR_|Failed to load/;
  const home = await visit('/', expected);
  const beside = await Promise.all(paths.map((path) => visit(path, expected, home)));
  const pages = [...beside, await visit('/runs', expected), home];
  const [ofRun, ofReview] = pages.map(({ page }) => page) as [OpenPage['page'], OpenPage['page']];
  const cancel = ofRun.getByRole('button', { name: 'Cancel …' });
  const submit = ofReview.getByRole('button', { name: 'Submit' });
  const answer = ofReview.getByLabel('Output as JSON');
  await answer.fill('{ "published": true }');
  await ofReview.getByRole('button', { name: 'Release' }).waitFor();
  const port = new URL(capstan.url).port;
  await capstan.killServer('SIGKILL');
  for (const { page } of pages) await page.getByText('The server has not answered since').waitFor();
  expect([await cancel.isDisabled(), await submit.isDisabled()]).toEqual([true, true]);
  expect(await answer.inputValue()).toBe('{ "published": true }');
  await ofRun.getByRole('heading', { name: 'test' }).getByText('Waiting for review').waitFor();
  await capstan.startServer({ PORT: port });
  for (const { page } of pages) {
    await page.getByText('live', { exact: true }).waitFor();
    expect(await page.getByText('The server has not answered since').count()).toBe(0);
  }
  expect(await cancel.isDisabled()).toBe(false);
  await submit.click();
  await ofRun.getByRole('heading', { name: 'test' }).getByText('Succeeded').waitFor();
  expect((await capstan.ended(run)).output).toEqual({ publish: { published: true } });
  for (const opened of pages) {
    opened.expectQuiet();
    await opened.close();
  }
});

test('whose session has ended signs in again, and is back at the step and the tab of before', async () => {
  const { run_id: id } = await capstan.submit([{ id: 'night', wait: '1d' }]);
  const path = `/runs/${id}?view=log&step=night&tab=money`;
  const opened = await visit(path, /401/);
  const { page, context } = opened;
  const askToCancel = () => page.getByRole('button', { name: 'Cancel …' }).click();
  const confirm = page.getByRole('button', { name: 'Cancel the run' });
  const key = page.getByLabel('Or paste an API key');
  await askToCancel();
  // As the browser does after 12 hours.
  await context.clearCookies();
  // A page out of sight does not ask for its session once a minute: the refusal alone leads to the sign-in.
  const setVisibility = (state: string) =>
    page.evaluate(
      `Object.defineProperty(document, 'visibilityState', { get: () => '${state}', configurable: true })`,
    );
  await setVisibility('hidden');
  // Another request of the page may be refused before this one.
  await confirm.or(key).click();
  await key.fill(capstan.key);
  await setVisibility('visible');
  expect((await capstan.read<Run>(`/v1/runs/${id}`)).state).toBe('running');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('tab', { name: 'Money', selected: true }).waitFor();
  expect(page.url()).toBe(`${capstan.url}/ui${path}`);
  await askToCancel();
  await confirm.click();
  expect((await capstan.ended(id)).state).toBe('cancelled');
  opened.expectQuiet();
  await opened.close();
});
