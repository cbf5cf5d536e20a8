/**
 * Finds free ports of this machine. The ports of a stack are those of its last start if they are free, else the usual
 * ones, else any. A port that the user names is that one or an error.
 */

import { randomInt } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { describeTakenPort } from '@capstan/core/errors/taken-port';

export function isPortAnswered(port: number): Promise<boolean> {
  return new Promise<boolean>((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** @returns whether it could be bound for a moment */
function canBind(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

export async function isPortFree(port: number): Promise<boolean> {
  return (await canBind(port)) && !(await isPortAnswered(port));
}

/** Systems give connections ports above these: one of those may be gone before its server binds it. */
const [lowest, highest] = [10_000, 32_000];
const mostTries = 1_000;

/** The first free port of `preferred`, else any free one that is not in `taken`. */
export async function choosePort(
  preferred: readonly number[],
  taken: ReadonlySet<number> = new Set(),
): Promise<number> {
  for (const port of preferred) if (!taken.has(port) && (await isPortFree(port))) return port;
  for (let tries = 0; tries < mostTries; tries++) {
    const port = randomInt(lowest, highest);
    if (!taken.has(port) && (await isPortFree(port))) return port;
  }
  throw new Error(`no free TCP port on 127.0.0.1 from ${lowest} to ${highest}`);
}

export interface StackPorts {
  readonly api: number;
  readonly postgres: number;
  readonly temporal: number;
  readonly temporal_ui: number;
}

const usual: StackPorts = { api: 7_400, postgres: 7_432, temporal: 7_233, temporal_ui: 8_233 };

function readLast(file: string): Partial<StackPorts> {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
}

type PortName = keyof StackPorts;

const portNames = Object.keys(usual) as PortName[];

/** The ports of a stack; one that another process takes first is replaced by a free one. */
export interface PortPlan {
  /** At present. */
  readonly ports: () => StackPorts;
  /** @throws Error for a port that the user named, which names its holder */
  readonly replace: (names: readonly PortName[]) => Promise<void>;
}

/** The error of a port that the user named. */
function refuseTaken(port: number): Error {
  return new Error(
    `${describeTakenPort(port)}: stop that one, name another port, or let --port 0 choose one`,
  );
}

/**
 * @param apiPort the port that the user named; null = none, 0 = that of the last start, else any
 * @throws Error when the named port is in use
 */
export async function planStackPorts(dataDir: string, apiPort: number | null): Promise<PortPlan> {
  const file = join(dataDir, 'ports.json');
  const last = readLast(file);
  const named = apiPort === 0 ? null : apiPort;
  if (named !== null && !(await isPortFree(named))) throw refuseTaken(named);
  const chosen: Record<PortName, number> = { ...usual };
  const used = new Set<number>();
  const choose = async (name: PortName, preferred: readonly number[]): Promise<void> => {
    chosen[name] = await choosePort(preferred, used);
    used.add(chosen[name]);
  };
  const write = (): void => writeFileSync(file, JSON.stringify(chosen));
  for (const name of portNames) {
    const isAny = name === 'api' && apiPort === 0;
    const kept = [last[name], isAny ? undefined : usual[name]].filter((port) => port !== undefined);
    await choose(name, name === 'api' && named !== null ? [named] : kept);
  }
  write();
  return {
    ports: () => ({ ...chosen }),
    replace: async (names) => {
      if (named !== null && names.includes('api')) throw refuseTaken(named);
      for (const name of names) await choose(name, []);
      write();
    },
  };
}

const taken = /address already in use|EADDRINUSE/i;
const mostStarts = 5;

/**
 * Starts a part of the stack on its ports. Between the choice of a port and its use, another process may take it: then
 * the part gets others and starts again.
 */
export async function startOnPorts<Result>(
  plan: PortPlan,
  names: readonly PortName[],
  start: (ports: StackPorts) => Promise<Result>,
): Promise<Result> {
  for (let starts = 1; ; starts++) {
    try {
      return await start(plan.ports());
    } catch (error) {
      if (starts === mostStarts || !taken.test(String(error))) throw error;
      await plan.replace(names);
    }
  }
}
