/**
 * Builds the console's page in a checkout when its sources have changed: it compares a hash of the sources with that of
 * the last build. A package contains the built page.
 */

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PartReport } from './progress.ts';

// The hash of the page's sources. If it equals that of the last build, no build is needed.

const sources = [
  'packages/console/index.html',
  'packages/console/lucide-drawings.ts',
  'packages/console/public',
  'packages/console/src',
  'packages/console/theme.css',
  'packages/console/vite.config.ts',
  'packages/core/src',
  'package-lock.json',
];

function listFiles(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) => listFiles(join(path, entry.name)));
  } catch {
    return [path];
  }
}

/** @returns null in an installed package, which has no sources of the page */
export function hashConsoleSources(root: string): string | null {
  if (!existsSync(join(root, 'packages', 'console', 'vite.config.ts'))) return null;
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

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const keptOutput = 2_000;

function readBuiltHash(root: string): string | null {
  try {
    return readFileSync(join(root, consoleHashFile), 'utf8').trim();
  } catch {
    return null;
  }
}

/** Lower than that of the parts of the stack, which start in parallel. */
const buildPriority = 10;

function runBuild(root: string, signal: AbortSignal | undefined): Promise<void> {
  const args = ['--import', 'tsx', join('scripts', 'console', 'build.ts')];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], signal });
  if (child.pid !== undefined) setPriority(child.pid, buildPriority);
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed = (printed + text).slice(-keptOutput);
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(printed.trim()))));
  });
}

interface BuildOptions {
  /** Default: this checkout. */
  readonly root?: string;
  /** Ends the build. */
  readonly signal?: AbortSignal;
}

/** A failed build leaves the rest of the stack running: the API needs no page. */
export async function buildConsole(report: PartReport, options: BuildOptions = {}): Promise<void> {
  const { root = checkout, signal } = options;
  const hash = hashConsoleSources(root);
  if (hash === null || hash === readBuiltHash(root)) return;
  report('working', 'building the page');
  await runBuild(root, signal).then(
    () => report('ready', 'built from its sources'),
    (error: Error) => {
      if (signal?.aborted !== true) report('failed', `the page could not be built: ${error.message}`);
    },
  );
}
