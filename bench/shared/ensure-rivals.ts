/** Rivals are no part of Capstan's own dependencies: they are installed into this folder when first needed. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../node_modules', import.meta.url));

/** @param packages that must be there @returns the folder with all of them */
export function ensureRivals(packages: readonly string[]): string {
  if (packages.every((name) => existsSync(join(folder, name, 'package.json')))) return folder;
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: join(folder, '..'),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return folder;
}
