/** The graph that is open is dragged, zoomed, and a step of it pressed. */
import type { Page } from 'playwright-core';
import type { UseMeasure } from './bars.ts';
import { watch } from './watch.ts';

const moves = 60;

async function dragAndZoom(page: Page, { x, y }: { readonly x: number; readonly y: number }): Promise<void> {
  await page.mouse.move(x, y);
  await page.mouse.down();
  for (let move = 0; move < moves; move++) await page.mouse.move(x + 4 * move, y + 2 * (move % 20));
  await page.mouse.up();
  for (let turn = 0; turn < moves; turn++) await page.mouse.wheel(0, turn < moves / 2 ? -40 : 40);
}

export async function measureUse(page: Page): Promise<UseMeasure> {
  const box = await page.locator('.react-flow').boundingBox();
  if (box === null) throw new Error('the page shows no graph');
  const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  const { frames_per_second, longest_task_ms } = await watch(page, () => dragAndZoom(page, middle));
  await page.getByRole('button', { name: 'Fit View' }).click();
  await page.getByRole('button', { name: 'List view' }).click();
  const row = page.getByRole('row').nth(3).getByRole('button');
  await row.waitFor();
  const began = performance.now();
  await row.click();
  await page.getByRole('complementary', { name: /^Step/ }).waitFor();
  return { frames_per_second, longest_task_ms, select_ms: Math.round(performance.now() - began) };
}
