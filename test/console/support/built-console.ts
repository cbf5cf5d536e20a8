/** The page as it is built from this checkout, where the compiled package looks for it. */
import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildConsole } from '../../../src/dev/console/build-console.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** @throws Error with what the build printed */
export async function provideConsole(packageFolder: string): Promise<void> {
  await buildConsole((status, detail) => {
    if (status === 'failed') throw new Error(detail);
  }, root);
  const place = join(packageFolder, 'dist', 'console');
  if (!existsSync(place)) symlinkSync(join(root, 'dist', 'console'), place);
}
