/** Instances in separate processes that keep a journal, and its content. */
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { choosePort } from '../../src/dev/ports.ts';
import { findCompiled } from './compiled.ts';
import type { FleetMember, FromInstances, JournalEntry, ToInstances } from './instance-messages.ts';

export interface JournalInstance extends FleetMember {
  readonly endpoint: string;
}

/** Instances of one process. */
export interface JournalFleet {
  readonly instances: readonly JournalInstance[];
  /** Kills all with SIGKILL. */
  kill(): Promise<void>;
  /** A new process on the same ports. */
  restart(): Promise<void>;
  /** SIGSTOP: it accepts connections and answers nothing. */
  silence(): void;
  setFailing(port: number, fails: boolean): void;
  /** In the order of writing. */
  journal(): Promise<readonly JournalEntry[]>;
}

async function startProcess(
  packageFolder: string,
  path: string,
  members: readonly FleetMember[],
): Promise<ChildProcess> {
  const program = findCompiled(packageFolder, 'test/support/instance-process.ts');
  const child = fork(program, [path, JSON.stringify(members)], {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  await new Promise<void>((resolve, reject) => {
    child.once('message', (_: FromInstances) => resolve());
    child.once('exit', (code) => reject(new Error(`the instances ended with ${code}`)));
  });
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
}

/** On a free port by default. */
export type MemberOptions = Pick<FleetMember, 'name'> & Partial<Omit<FleetMember, 'name'>>;

/** @param folder of the journal */
export async function startJournalFleet(
  { folder, packageFolder }: { readonly folder: string; readonly packageFolder: string },
  options: readonly MemberOptions[],
): Promise<JournalFleet> {
  const taken = new Set<number>();
  const instances: JournalInstance[] = [];
  for (const option of options) {
    const port = option.port ?? (await choosePort([], taken));
    taken.add(port);
    instances.push({
      cost_model: { type: 'free', rate_usd: 0 },
      max_concurrency: 1,
      tags: ['local'],
      minMs: 5,
      maxMs: 10,
      failureShare: 0,
      ...option,
      port,
      endpoint: `http://127.0.0.1:${port}`,
    });
  }
  const path = join(folder, `${randomUUID()}.journal`);
  let child = await startProcess(packageFolder, path, instances);
  return {
    instances,
    kill: () => kill(child),
    restart: async () => {
      await kill(child);
      child = await startProcess(packageFolder, path, instances);
    },
    silence: () => void child.kill('SIGSTOP'),
    setFailing: (port, fails) => void child.send({ port, fails } satisfies ToInstances),
    journal: async () => {
      const lines = (await readFile(path, 'utf8')).split('\n');
      return lines.flatMap((line) => (line === '' ? [] : [JSON.parse(line) as JournalEntry]));
    },
  };
}

/** The most parallel calls of an instance. */
export function mostAtOnce(journal: readonly JournalEntry[], port: number): number {
  let atWork = 0;
  let most = 0;
  for (const entry of journal) {
    if (entry.port !== port) continue;
    atWork = entry.kind === 'start' ? 0 : atWork + (entry.kind === 'begin' ? 1 : -1);
    most = Math.max(most, atWork);
  }
  return most;
}
