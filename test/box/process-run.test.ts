import { expect, it, onTestFinished } from 'vitest';
import { startProcess } from '../../src/box/process-run.ts';
import { isRunning, readProcessMark } from '../../src/dev/supervisor/child-process.ts';
import { startWatchdog } from '../../src/dev/supervisor/watchdog.ts';
import { waitFor } from '../support/wait.ts';

function start(script: string) {
  const watchdog = startWatchdog(null);
  const lines: string[] = [];
  const run = startProcess(
    {
      command: ['/bin/sh', '-c', script],
      folder: '/',
      environment: process.env,
      onLine: (line) => lines.push(line),
    },
    watchdog,
  );
  onTestFinished(async () => {
    run.kill();
    await run.ended;
    await watchdog.close();
  });
  const pidOf = async (line: number) => {
    const pid = Number(await waitFor('the line', () => lines[line]));
    return { pid, mark: readProcessMark(pid) ?? '' };
  };
  return { run, lines, pidOf };
}

it('ends what a process leaves behind, and reports how the process ended', async () => {
  const { run, pidOf } = start('sleep 600 & echo $!; exec sleep 0.1');
  const left = await pidOf(0);
  expect(await run.ended).toEqual({ reason: 'ended with exit code 0', isClean: true });
  await waitFor('its end', () => !isRunning(left));
});

it('stops the whole group, by force after the limit', async () => {
  const { run, pidOf } = start("trap '' TERM; echo $$; while :; do sleep 0.1; done");
  const leader = await pidOf(0);
  expect(isRunning(leader)).toBe(true);
  await run.stop(200);
  expect(await run.ended).toEqual({ reason: 'ended by SIGKILL', isClean: false });
});

it('reads the last line although it has no end', async () => {
  const { run, lines } = start('printf "a\\nb"');
  await run.ended;
  expect(lines).toEqual(['a', 'b']);
});

it('reports a program that cannot be started', async () => {
  const watchdog = startWatchdog(null);
  onTestFinished(watchdog.close);
  const nothing = { folder: '/', environment: {}, onLine: () => undefined };
  const run = startProcess({ command: ['/no/such/program'], ...nothing }, watchdog);
  expect((await run.ended).reason).toMatch(/^could not be started: .*ENOENT/);
});
