/** The work of an administrator who limits the calls of a team, and looks at what each team spends. */
import { expect, test } from 'vitest';
import { useSharedStudio } from '../support/studio.ts';

const visitors = useSharedStudio();

test('a budget of a label is set, shown with its bar and removed, also on a phone', async () => {
  const opened = await visitors.visit();
  const { page, axe } = opened;
  await opened.go('/costs');
  await page.getByText('None yet. A budget limits a part of the calls').waitFor();
  await page.getByRole('button', { name: 'New budget' }).click();
  await page.getByLabel('Scope').fill('label:team=ads');
  await page.getByLabel('Period of the budget').selectOption('month');
  await page.getByLabel('Limit (USD)').fill('12.5');
  await page.getByRole('button', { name: 'Set', exact: true }).click();
  const row = page.getByRole('row', { name: /label:team=ads/ });
  await row.waitFor();
  expect(await row.textContent()).toContain('$0 of $12.50 a month');
  await opened.resizeTo(390);
  const findings = await axe('all');
  const cut = await page.evaluate(
    `[...document.querySelectorAll('table')].filter((table) => table.scrollWidth > table.parentElement.clientWidth + 1).length`,
  );
  expect([findings, cut]).toEqual([[], 0]);
  await row.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('button', { name: 'Remove the budget' }).click();
  await page.getByText('None yet.').waitFor();
  await page.getByLabel('By', { exact: true }).selectOption('label');
  const name = page.getByLabel('Name of the label');
  await name.fill('team');
  const asked = page.waitForRequest(/costs\/series.*by=label%3Ateam/);
  await name.blur();
  await asked;
  opened.expectQuiet();
  await opened.close();
});
