/** Parts of the page whose files are loaded when they are first shown, and what happens when such a file is gone. */
import { lazyRouteComponent } from '@tanstack/react-router';
import { use } from 'react';
import { fetchHeard } from '../api/answers.ts';

/** The browsers' messages for a module that failed to load; none of them has an error name for it. */
const lostFile =
  /dynamically imported module|Importing a module script failed|error loading dynamically|Unable to preload/i;

/** A file of the page could not be loaded, and a reload has not helped. */
export class LostFile extends Error {}

const reloadedAt = 'capstan.reloaded';
/** Two reloads within this would be a loop. */
const loopMs = 30_000;
const serverMs = 5_000;
const never = new Promise<never>(() => {});
let reload: Promise<unknown> | null = null;

/** A reload while the server is away would end in the error page of the browser. */
function isServerThere(): Promise<boolean> {
  const asked = fetchHeard('/livez', { cache: 'no-store', signal: AbortSignal.timeout(serverMs) });
  return asked.then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Never ends if it reloads the page; otherwise it ends when that would not help. */
async function reloadOnce(): Promise<void> {
  const now = Date.now();
  if (now - Number(sessionStorage.getItem(reloadedAt) ?? 0) < loopMs) return;
  if (!(await isServerThere())) return;
  sessionStorage.setItem(reloadedAt, String(now));
  location.reload();
  await never;
}

/**
 * Stands for a part whose file is gone, as after an update of the server: if the server answers, the page is reloaded
 * once, and the part stays pending until it is. It happens when the part is shown: a link that is only pointed at reloads nothing.
 */
function LostPart(): never {
  reload ??= reloadOnce();
  use(reload);
  throw new LostFile('a file of the page could not be loaded');
}

/** @param load imports the part's module @param name the component that it exports */
export const latePart: typeof lazyRouteComponent = (load, name) =>
  lazyRouteComponent(
    () =>
      load().catch((error: unknown) => {
        if (!(error instanceof Error && lostFile.test(error.message))) throw error;
        return { [name ?? 'default']: LostPart } as never;
      }),
    name,
  );
