/** The process of all wraps, also when it hangs. */
import { findPort } from '@capstan/capability/lifecycle/start-instance';
import { expect, it, onTestFinished } from 'vitest';
import { post, readJson } from '../../packages/capability/test/support/capabilities.ts';
import { aFolder } from '../../packages/capability/test/support/folders.ts';
import type { PlannedInstance } from '../../src/box/fleet-plan.ts';
import { createWrapsHost } from '../../src/box/wraps-host.ts';
import { startWatchdog } from '../../src/dev/supervisor/watchdog.ts';

const text = `
kind: command
name: parent
version: 1.0.0
description: Names the process of the wraps.
input: {type: object}
command: {argv: [sh, -c, 'echo $PPID'], stdout: text}
`;

it('kills the process when a wrap in it does not stop, which ends the others too', async () => {
  const watchdog = startWatchdog(null);
  const folder = await aFolder();
  const lines: string[] = [];
  const log = (line: string) => void lines.push(line);
  const host = createWrapsHost({ environment: process.env, stateDir: folder, watchdog, log, graceMs: 50 });
  onTestFinished(async () => {
    host.kill();
    await host.stop();
    await watchdog.close();
  });
  const launch = async (name: string) => {
    const at = { host: '127.0.0.1', port: await findPort('127.0.0.1', 0) };
    const planned = { name, facts: {}, stopMs: 0 } as PlannedInstance;
    const own = { HOST: at.host, PORT: String(at.port), MEDIA_URL: `file://${folder}` };
    const place = {
      ...at,
      planned,
      environment: { ...process.env, ...own },
      cacheDir: folder,
      watchdog,
      log,
    };
    const run = host.launch(place, { text, folder });
    await run.ready;
    /** Stops the process as a debugger does. */
    const hang = async () => {
      const answer = post(`http://${at.host}:${at.port}/exec`, '{}');
      const { body } = await readJson<{ output: { text: string } }>(answer);
      process.kill(Number(body.output.text), 'SIGSTOP');
    };
    return { ...run, hang };
  };
  const end = { reason: 'the process of the wraps ended by SIGKILL', isClean: false };
  const [first, other] = [await launch('first'), await launch('other')];
  await first.hang();
  await first.stop(0);
  expect([await first.ended, await other.ended]).toEqual([end, { ...end, isOfOther: true }]);
  const again = await launch('first');
  await again.hang();
  again.kill();
  expect(await again.ended).toEqual(end);
  const line = 'first does not stop, so the process of the wraps is killed';
  expect(lines).toEqual([line, line]);
});
