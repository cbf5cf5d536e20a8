/**
 * Finds free ports of this machine. The ports of a stack are those of its last start if they are free, else the usual
 * ones, else any.
 */

import { randomInt } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';

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

/** @param apiPort the port that the user asked for; null = none */
export async function chooseStackPorts(dataDir: string, apiPort: number | null): Promise<StackPorts> {
  const file = join(dataDir, 'ports.json');
  const last = readLast(file);
  const chosen: Partial<Record<keyof StackPorts, number>> = {};
  for (const name of Object.keys(usual) as (keyof StackPorts)[]) {
    const asked = name === 'api' ? apiPort : null;
    const preferred = asked === null ? [last[name], usual[name]] : [asked];
    const wanted = preferred.filter((port) => port !== undefined && port !== 0) as number[];
    chosen[name] = await choosePort(wanted, new Set(Object.values(chosen)));
  }
  const ports = chosen as StackPorts;
  writeFileSync(file, JSON.stringify(ports));
  return ports;
}
