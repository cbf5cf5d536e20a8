import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { choosePort, isPortAnswered } from '../../src/dev/ports.ts';
import { createPartReport } from '../../src/dev/progress.ts';
import { createSupervisor } from '../../src/dev/supervisor/supervisor.ts';
import { startTemporal } from '../../src/dev/temporal/server.ts';
import { findCacheDir, findTemporal } from '../../src/dev/temporal/source.ts';

const taken =
  'failed listening for HTTP API on 127.0.0.1:1: listen tcp 127.0.0.1:1: bind: address already in use';

/** Starts a program that prints a message and ends, so many times, and is the development server after that. */
async function start(message: string, failures: number) {
  const dataDir = mkdtempSync(join(tmpdir(), 'capstan-temporal-'));
  const report = () => undefined;
  const supervisor = createSupervisor({ report, temporaryFolder: null });
  onTestFinished(async () => {
    await supervisor.stop();
    rmSync(dataDir, { recursive: true });
  });
  const environment = process.env;
  const cacheDir = findCacheDir(environment, homedir());
  const found = await findTemporal({ cacheDir, environment }, createPartReport(report, 'Temporal'));
  const program = join(dataDir, 'temporal.sh');
  const starts = join(dataDir, 'starts');
  const lines = [`echo >> ${starts}`, `[ $(wc -l < ${starts}) -gt ${failures} ] && exec ${found.path} "$@"`];
  writeFileSync(program, ['#!/bin/sh', ...lines, `echo '${message}'`, 'exit 1'].join('\n'), { mode: 0o755 });
  const port = await choosePort([]);
  const uiPort = await choosePort([], new Set([port]));
  return startTemporal(supervisor, { dataDir, port, uiPort, environment, ephemeral: true, program });
}

test('Temporal is started again when another process took the port that it had picked', async () => {
  const address = await start(taken, 1);
  expect(await isPortAnswered(Number(address.split(':')[1]))).toBe(true);
});

test('a start that fails three times, or for another reason, is reported', async () => {
  await expect(start(taken, 3)).rejects.toThrow('address already in use');
  await expect(start('no space left on device', 1)).rejects.toThrow('no space left on device');
});
