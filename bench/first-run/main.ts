/**
 * How long a machine without Capstan takes until its first run has succeeded: `npm run bench -- first-run
 * [--only NAME]`. Each way starts with the files of this checkout alone, an empty home and empty caches, and prints
 * when each part was ready:
 *
 * - `checkout`: `npm run demo`, then `npm test` with one file;
 * - `package`: one line of `npx` with the packed tarball.
 *
 * Neither Temporal nor Go is on the PATH. Wall-clock time depends on the other work of the machine, so the processor
 * time is printed too.
 */
import { spawn } from 'node:child_process';
import { copyFile, mkdir, symlink } from 'node:fs/promises';
import { availableParallelism, homedir, loadavg } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runCommand } from '../../scripts/package/run-command.ts';
import { findOnPath } from '../../src/dev/programs.ts';
import { runBench, say } from '../shared/run-bench.ts';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({ options: { only: { type: 'string' } } });
/** Lines that name a part, and how the table calls it. */
const marks: readonly (readonly [RegExp, (match: RegExpExecArray) => string])[] = [
  [/^added \d+ packages/, () => 'packages installed'],
  [/^✓ (Succeeded) /, () => 'THE FIRST RUN HAS SUCCEEDED'],
  [/^✓ (\S+) /, ([, part]) => `${part} ready`],
  [/Tests .*passed/, () => 'tests passed'],
];

/** The environment of a user who has Node, and Python if this machine has it. */
async function createEnvironment(folder: string): Promise<NodeJS.ProcessEnv> {
  const [home, bin] = [join(folder, 'home'), join(folder, 'bin')];
  for (const path of [home, bin, join(folder, 'tmp')]) await mkdir(path, { recursive: true });
  // Settings of this machine, such as a registry of its own.
  await copyFile(join(homedir(), '.npmrc'), join(home, '.npmrc')).catch(() => undefined);
  for (const name of ['node', 'npm', 'npx']) {
    const path = await findOnPath(name, process.env);
    if (path !== null) await symlink(path, join(bin, name));
  }
  const folders = [bin];
  for (const path of (process.env.PATH ?? '').split(delimiter)) {
    const isNeeded =
      !path.includes('node_modules') && (await findOnPath('temporal', { PATH: path })) === null;
    if (isNeeded && (await findOnPath('go', { PATH: path })) === null) folders.push(path);
  }
  const own = /^(npm_|CAPSTAN_|TEMPORAL_|XDG_|NODE_OPTIONS|INIT_CWD|DATABASE_URL|MEDIA_URL|VITEST)/;
  const kept = Object.entries(process.env).filter(([name]) => !own.test(name));
  return {
    ...Object.fromEntries(kept),
    PATH: folders.join(delimiter),
    HOME: home,
    TMPDIR: join(folder, 'tmp'),
  };
}

/** `times` of a POSIX shell: user and system time of what it has run. */
const timesLine = /^(\d+)m([\d.]+)s (\d+)m([\d.]+)s$/;

function readProcessorSeconds(line: string): number | null {
  const [, ...parts] = timesLine.exec(line.trim()) ?? [];
  const [userMinutes, user, systemMinutes, system] = parts.map(Number);
  if (system === undefined) return null;
  return Number(userMinutes) * 60 + Number(user) + Number(systemMinutes) * 60 + system;
}

/** Prints each part with the second at which it was ready. @throws Error with the last lines when the command fails */
async function time(command: string, cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  const began = performance.now();
  const second = (): string => ((performance.now() - began) / 1_000).toFixed(1).padStart(7);
  say(`\n$ ${command}`);
  const script = `(${command}) 2>&1; code=$?; times; exit $code`;
  const child = spawn('/bin/sh', ['-c', script], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const printed: string[] = [];
  let processorSeconds = 0;
  createInterface({ input: child.stdout }).on('line', (line) => {
    printed.push(line);
    processorSeconds = readProcessorSeconds(line) ?? processorSeconds;
    const mark = marks.find(([pattern]) => pattern.test(line));
    const match = mark?.[0].exec(line);
    if (mark !== undefined && match != null) say(`${second()} s  ${mark[1](match)}`);
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  const [load = 0] = loadavg();
  const processors = `${availableParallelism()} processors with a load of ${load.toFixed(1)}`;
  say(`${second()} s  ended; ${processorSeconds.toFixed(1)} s of processor time, ${processors}`);
  if (code !== 0) throw new Error(`${command}: exit code ${code}\n${printed.slice(-30).join('\n')}`);
}

/** The files of a clone: those that git knows of this checkout, and those that it does not ignore. */
async function copyCheckout(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const list = 'git ls-files -z --cached --others --exclude-standard';
  // Files that are deleted and not committed are listed too.
  const copy = `${list} | tar --null --ignore-failed-read -cf - -T - 2>/dev/null | tar -xf - -C '${folder}'`;
  await runCommand(['/bin/sh', '-c', copy], { cwd: checkout });
}

const ways: Readonly<Record<string, (folder: string) => Promise<void>>> = {
  checkout: async (folder) => {
    const [source, environment] = [join(folder, 'capstan'), await createEnvironment(folder)];
    await copyCheckout(source);
    await time('npm run demo -- --exit', source, environment);
    await time('npm test -- packages/core/test/duration.test.ts', source, environment);
  },
  package: async (folder) => {
    const environment = await createEnvironment(folder);
    const packed = ['npm', 'pack', '--silent', '--pack-destination', folder];
    const printed = await runCommand(packed, { cwd: checkout });
    const tarball = printed.trim().split('\n').at(-1) ?? '';
    await time(`npx --yes ./${tarball} demo --exit`, folder, environment);
  },
};

await runBench(async ({ dataDir }) => {
  for (const [name, measure] of Object.entries(ways)) {
    if (values.only === undefined || values.only === name) await measure(join(dataDir, name));
  }
  return true;
});
