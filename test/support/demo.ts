/** The demo as its user starts it, on data and ports of its own. */
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { choosePort } from '../../src/dev/ports.ts';

/** A stack that starts in the same moment would choose the same usual ports. */
async function rememberFreePorts(dataDir: string): Promise<void> {
  const ports: Record<string, number> = {};
  for (const name of ['api', 'postgres', 'temporal', 'temporal_ui']) {
    ports[name] = await choosePort([], new Set(Object.values(ports)));
  }
  await mkdir(dataDir);
  await writeFile(join(dataDir, 'ports.json'), JSON.stringify(ports));
}

export interface DemoOptions {
  /** A checkout or a package. */
  readonly folder: string;
  /** Does not exist yet. */
  readonly dataDir: string;
  readonly scenario?: string;
  readonly environment?: NodeJS.ProcessEnv;
}

/**
 * @returns what it printed
 * @throws Error when it does not end 0
 */
export async function runDemo({ folder, dataDir, scenario, environment }: DemoOptions): Promise<string> {
  await rememberFreePorts(dataDir);
  const words = scenario === undefined ? [] : [scenario];
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(folder, 'bin/capstan.mjs'), 'demo', ...words, '--exit', '--data', dataDir],
    { env: { ...process.env, ...environment, NO_COLOR: '1' } },
  );
  return stdout;
}
