/** That no story needs a pointer: others start, decide and cancel so (`learning.test.ts`, `standing.test.ts`). */
import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { withKeys } from '../support/hands.ts';
import { useSharedStudio } from '../support/studio.ts';

const visitors = useSharedStudio();

/** Escape, then Tab, as the editor explains; it waits for the Tab for two seconds, which a busy machine may miss. */
async function leaveEditor(page: Page, editor: Locator): Promise<void> {
  const isInside = (): Promise<boolean> =>
    editor.evaluate((element: unknown) =>
      (element as { matches(selector: string): boolean }).matches(':focus'),
    );
  for (let attempt = 0; attempt < 5 && (await isInside()); attempt++) {
    await page.keyboard.press('Escape');
    await page.keyboard.press('Tab');
  }
  expect(await isInside()).toBe(false);
}

test('a pipeline is edited and saved by keys alone, and the editor lets go of Tab', async () => {
  const opened = await visitors.visit();
  const { page } = opened;
  const hands = withKeys(page);
  await opened.go('/pipelines/reel');
  await hands.press(page.getByRole('link', { name: 'Edit' }));
  const definition = page.getByRole('textbox', { name: 'Definition, YAML' });
  await definition.waitFor();
  await hands.reach(definition);
  await page.keyboard.press('Control+End');
  await page.keyboard.type('# Edited');
  const save = page.locator('button:enabled', { hasText: 'Save version' });
  await save.waitFor();
  await leaveEditor(page, definition);
  await hands.press(save);
  await hands.press(page.getByRole('button', { name: /^Save 1/ }));
  await opened.arrive(/\/ui\/pipelines\/reel$/);
  await page.getByRole('combobox', { name: 'Version' }).getByText('1.1').waitFor({ state: 'attached' });
  opened.expectQuiet();
  await opened.close();
});
