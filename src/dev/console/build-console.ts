/** In a checkout the page is built when what it is made of has changed; in a package it is there. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PartReport } from '../progress.ts';
import { consoleHashFile, hashConsoleSources } from './source-hash.ts';

const checkout = fileURLToPath(new URL('../../..', import.meta.url));
const keptOutput = 2_000;

function readBuiltHash(root: string): string | null {
  try {
    return readFileSync(join(root, consoleHashFile), 'utf8').trim();
  } catch {
    return null;
  }
}

function runBuild(root: string): Promise<void> {
  const args = ['--import', 'tsx', join('scripts', 'console', 'build.ts')];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
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

/** A build that fails leaves the rest of the stack as it is: the API needs no page. */
export async function buildConsole(report: PartReport, root: string = checkout): Promise<void> {
  const hash = hashConsoleSources(root);
  if (hash === null || hash === readBuiltHash(root)) return;
  report('working', 'building the page');
  await runBuild(root).then(
    () => report('ready', 'built from its sources'),
    (error: Error) => report('failed', `the page could not be built: ${error.message}`),
  );
}
