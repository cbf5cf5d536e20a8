/**
 * Processes and memory of wraps as commands of their own and as one file: `npm run bench -- up [--wraps N] [--beside
 * FOLDER]`, where FOLDER is another checkout whose commands are measured too. Nothing registers. Memory is the
 * proportional set size (PSS) of all processes, in which a page that n processes share counts 1/n for each. Bar: one
 * file needs at most half of the memory of five commands, since the heap of a process varies by a fifth.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isRunning, readProcessMark } from '../../src/dev/supervisor/child-process.ts';
import { waitFor } from '../../test/support/wait.ts';

const { values } = parseArgs({
  options: { wraps: { type: 'string', default: '5' }, beside: { type: 'string' } },
});
const count = Number(values.wraps);
const mostShare = 0.5;
const firstPort = 18_100;
const here = new URL('../..', import.meta.url).pathname;

function readParent(pid: number): number {
  const status = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return Number(status.slice(status.lastIndexOf(')') + 2).split(' ')[1]);
}

function listProcesses(): Map<number, number> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const known = new Map<number, number>();
  for (const pid of pids.map(Number)) {
    try {
      known.set(pid, readParent(pid));
    } catch {
      // It has ended.
    }
  }
  return known;
}

/** The processes, and all that they have started. */
function listTree(roots: readonly number[]): number[] {
  const parents = listProcesses();
  const isInside = (pid: number): boolean =>
    pid > 1 && (roots.includes(pid) || isInside(parents.get(pid) ?? 0));
  return [...parents.keys()].filter(isInside);
}

interface Footprint {
  readonly what: string;
  readonly processes: number;
  /** Processes of Node. */
  readonly node: number;
  readonly mb: number;
}

function measure(what: string, roots: readonly number[]): Footprint {
  const tree = listTree(roots);
  const kb = tree.map((pid) =>
    Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0),
  );
  const node = tree.filter((pid) => /^\S*node\0/.test(readFileSync(`/proc/${pid}/cmdline`, 'latin1'))).length;
  return {
    what,
    processes: tree.length,
    node,
    mb: Math.round(kb.reduce((sum, one) => sum + one, 0) / 1_024),
  };
}

function writeWrap(index: number): string {
  return `kind: command
name: echo${index}
version: 1.0.0
description: Answers a text.
input: {type: object, required: [text], properties: {text: {type: string}}}
command: {argv: [echo, "{{ input.text }}"]}
`;
}

/** Starts commands, waits until all wraps are healthy, measures, and ends them. */
async function run(what: string, checkout: string, commands: readonly Started[]): Promise<Footprint> {
  const children = commands.map(({ args, port }): ChildProcess => {
    const environment = { ...process.env, ...(port === undefined ? {} : { PORT: String(port) }) };
    const program = [join(checkout, 'bin/capstan.mjs'), ...args, '--no-register'];
    return spawn(process.execPath, program, { env: environment, stdio: 'ignore' });
  });
  const roots = children.map(({ pid }) => pid ?? 0);
  try {
    for (let index = 0; index < count; index += 1) {
      const url = `http://127.0.0.1:${firstPort + index}/health`;
      await waitFor(`${what}: ${url}`, () =>
        fetch(url).then(
          ({ ok }) => ok,
          () => false,
        ),
      );
    }
    return measure(what, roots);
  } finally {
    const tree = listTree(roots).map((pid) => ({ pid, mark: readProcessMark(pid) ?? '' }));
    const gone = children.map((child) => once(child, 'exit'));
    for (const child of children) child.kill('SIGTERM');
    await Promise.all(gone);
    await waitFor('the end of all processes', () => !tree.some(isRunning));
  }
}

interface Started {
  readonly args: readonly string[];
  readonly port?: number;
}

const folder = mkdtempSync(join(tmpdir(), 'capstan-bench-up-'));
try {
  const indices = Array.from({ length: count }, (_, index) => index);
  for (const index of indices) writeFileSync(join(folder, `${index}.yaml`), writeWrap(index));
  const entries = indices.map((index) => [
    `echo${index}`,
    { wrap: `${index}.yaml`, port: firstPort + index },
  ]);
  const fleet = join(folder, 'fleet.json');
  writeFileSync(fleet, JSON.stringify({ capabilities: Object.fromEntries(entries) }));
  const single = indices.map((index) => ({
    args: ['capability', 'wrap', join(folder, `${index}.yaml`)],
    port: firstPort + index,
  }));
  const rows: Footprint[] = [];
  if (values.beside !== undefined)
    rows.push(await run(`${count} × capability wrap, beside`, values.beside, single));
  const alone = await run(`${count} × capability wrap`, here, single);
  const together = await run('1 × up', here, [{ args: ['up', fleet] }]);
  rows.push(alone, together);
  console.log(`${''.padEnd(30)}  processes  of Node  memory, MB (PSS)`);
  for (const { what, processes, node, mb } of rows) {
    console.log(
      `${what.padEnd(30)}  ${String(processes).padStart(9)}  ${String(node).padStart(7)}  ${String(mb).padStart(16)}`,
    );
  }
  const share = together.mb / alone.mb;
  const isHeld = share <= mostShare || count < 5;
  console.log(
    `${isHeld ? 'ok  ' : 'FAIL'} one file needs ${share.toFixed(2)} of the memory of ${count} commands, at most ${mostShare}`,
  );
  process.exitCode = isHeld ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
