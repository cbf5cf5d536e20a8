/** The ports of a stack: those of its last start if they are free, else the usual ones, else any. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { choosePort } from './ports.ts';

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

/** @param apiPort asked for by the user; null = none */
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
