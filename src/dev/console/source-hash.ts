/** What the page is made of, as one hash: when it is that of the last build, nothing is to be built. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const sources = [
  'console',
  'src/contracts',
  'src/core',
  'src/definitions',
  'src/mock-run',
  'src/schemas',
  'package-lock.json',
];

function listFiles(path: string): string[] {
  if (path.endsWith('.d.ts') && path.includes('schema')) return [];
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) => listFiles(join(path, entry.name)));
  } catch {
    return [path];
  }
}

/** @returns null where the sources of the page are not: in an installed package */
export function hashConsoleSources(root: string): string | null {
  if (!existsSync(join(root, 'console', 'vite.config.ts'))) return null;
  const hash = createHash('sha256');
  for (const file of sources.flatMap((source) => listFiles(join(root, source))).sort()) {
    hash
      .update(`${relative(root, file)}\0`)
      .update(readFileSync(file))
      .update('\0');
  }
  return hash.digest('hex');
}

export const consoleHashFile = 'dist/console/.hash';
