/** The page as it is built from this checkout, where the compiled package looks for it. */
import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { inject } from 'vitest';
import { buildConsole } from '../../../../src/dev/console.ts';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const buildLock = 4_027_114;

/** Of several workers one builds, and the others find it built. @returns its folder @throws Error with what the build printed */
export async function provideConsole(): Promise<string> {
  const client = new pg.Client({ connectionString: inject('databaseUrl') });
  await client.connect();
  try {
    await client.query('select pg_advisory_lock($1)', [buildLock]);
    const report = (status: string, detail: string): void => {
      if (status === 'failed') throw new Error(detail);
    };
    await buildConsole(report, { root });
    const place = join(inject('packageFolder'), 'dist', 'console');
    if (!existsSync(place)) symlinkSync(join(root, 'dist', 'console'), place);
  } finally {
    await client.end();
  }
  return join(root, 'dist', 'console');
}
