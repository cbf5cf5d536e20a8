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

/**
 * @param dataDir does not exist yet
 * @returns what it printed
 * @throws Error when it does not end 0
 */
export async function runDemo(dataDir: string, scenario: readonly string[] = []): Promise<string> {
  await rememberFreePorts(dataDir);
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['bin/capstan.mjs', 'demo', ...scenario, '--exit', '--data', dataDir],
    { env: { ...process.env, NO_COLOR: '1' } },
  );
  return stdout;
}
