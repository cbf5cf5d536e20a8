/** A user of the page: with a mouse, or with keys alone. */
import type { Locator, Page } from 'playwright-core';

export interface Hands {
  press(control: Locator): Promise<void>;
  /** In place of the present text. */
  write(field: Locator, text: string): Promise<void>;
  /** A tab of a list of tabs. */
  turnTo(tab: Locator): Promise<void>;
  /** A place of the navigation, by its name or by `g` and its letter. */
  go(place: Locator, letter: string): Promise<void>;
}

export function withMouse(): Hands {
  return {
    press: (control) => control.click(),
    write: async (field, text) => {
      await field.click();
      await field.fill(text);
    },
    turnTo: (tab) => tab.click(),
    go: (place) => place.click(),
  };
}

const mostTabs = 150;

function isFocused(control: Locator): Promise<boolean> {
  // An editor is in a shadow root, which has a focus of its own.
  return control.evaluate(
    (element: unknown) =>
      element ===
      (element as { getRootNode(): { readonly activeElement: unknown } }).getRootNode().activeElement,
  );
}

/** Tab after Tab, as a user does who sees no pointer. @throws Error when it cannot be reached so */
async function reach(page: Page, control: Locator): Promise<void> {
  await control.waitFor();
  for (let tab = 0; tab < mostTabs; tab++) {
    if (await isFocused(control)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${control} is not among the first ${mostTabs} that Tab reaches`);
}

export function withKeys(page: Page): Hands & { readonly reach: (control: Locator) => Promise<void> } {
  return {
    reach: (control) => reach(page, control),
    press: async (control) => {
      await reach(page, control);
      await page.keyboard.press('Enter');
    },
    write: async (field, text) => {
      await reach(page, field);
      await page.keyboard.press('Control+a');
      await page.keyboard.insertText(text);
    },
    turnTo: async (tab) => {
      // Tab stops at the chosen one of the list, arrows move within it.
      const list = page.getByRole('tablist').filter({ has: tab });
      await reach(page, list.getByRole('tab', { selected: true }));
      for (let arrow = 0; arrow < mostTabs && !(await isFocused(tab)); arrow++) {
        await page.keyboard.press('ArrowRight');
      }
      await page.keyboard.press('Enter');
    },
    go: async (_, letter) => {
      await page.keyboard.press('g');
      await page.keyboard.press(letter);
    },
  };
}
