/**
 * Compiles the sources once: what is measured is what ships. The TypeScript loader wraps every function it meets
 * to keep its name, which costs processor time on each call.
 */
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const folder = fileURLToPath(new URL('..', import.meta.url));
const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');

/** @throws Error with what the compiler says */
export const compileSources = async (): Promise<void> => {
  await promisify(execFile)(process.execPath, [compiler, '-p', join(folder, 'tsconfig.json'), '--noCheck']);
};

/** @param path relative to the repository, without extension */
export const compiledProgram = (path: string, ...args: readonly string[]) => ({
  command: process.execPath,
  args: [...readNodeOptions(), join(folder, 'dist', `${path}.js`), ...args],
});

/** For profiles: `BENCH_NODE_OPTIONS="--cpu-prof --cpu-prof-dir=/tmp/profiles"`. */
const readNodeOptions = (): readonly string[] =>
  (process.env.BENCH_NODE_OPTIONS ?? '').split(' ').filter((option) => option !== '');
