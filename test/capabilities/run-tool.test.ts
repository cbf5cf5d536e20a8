import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it, vi } from 'vitest';
import { locateMediaTools } from '../../capabilities/media-tools/locate.ts';
import { runFfmpeg, runWatchedFfmpeg } from '../../capabilities/media-tools/run-tool.ts';
import { aFolder } from '../../packages/capability/test/support/folders.ts';

it('kills ffmpeg when the signal aborts', async () => {
  const tools = await locateMediaTools(await aFolder());
  const caller = new AbortController();
  const target = `${await aFolder()}/endless.mkv`;
  const running = runFfmpeg(tools, ['-re', '-f', 'lavfi', '-i', 'testsrc', target], caller.signal);
  const isRunning = async () => {
    const { stdout } = await promisify(execFile)('pgrep', ['-f', target]).catch(() => ({ stdout: '' }));
    return stdout.trim() !== '';
  };
  await vi.waitFor(async () => expect(await isRunning()).toBe(true), { timeout: 60_000 });
  caller.abort();
  await expect(running).rejects.toThrow('aborted');
  expect(await isRunning()).toBe(false);
});

it("shows the end of ffmpeg's output when it fails", async () => {
  const tools = await locateMediaTools(await aFolder());
  const { signal } = new AbortController();
  const run = runFfmpeg(tools, ['-i', '/no/such/file', '-f', 'null', '-'], signal);
  await expect(run).rejects.toThrow(/ffmpeg exited with 1: .*No such file/);
});

it('reports the seconds that a long task has finished', async () => {
  const tools = await locateMediaTools(await aFolder());
  const seconds: number[] = [];
  const args = ['-f', 'lavfi', '-i', 'testsrc=duration=2', '-f', 'null', '-'];
  const signal = new AbortController().signal;
  await runWatchedFfmpeg(tools, args, { signal, onSeconds: (one) => seconds.push(one) });
  expect(seconds.at(-1)).toBeCloseTo(2, 0);
  expect(seconds).toEqual(seconds.toSorted((a, b) => a - b));
});
