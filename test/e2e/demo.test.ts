import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { locateMediaTools } from '../../capabilities/media-tools/locate.ts';
import { probeMedia } from '../../capabilities/media-tools/probe.ts';
import { runFfmpeg } from '../../capabilities/media-tools/run-tool.ts';
import { choosePort } from '../../src/dev/ports.ts';

const run = promisify(execFile);

/** A stack that starts in the same moment would choose the same usual ports. */
const rememberFreePorts = async (dataDir: string): Promise<void> => {
  const ports: Record<string, number> = {};
  for (const name of ['api', 'postgres', 'temporal', 'temporal_ui']) {
    ports[name] = await choosePort([], new Set(Object.values(ports)));
  }
  await mkdir(dataDir);
  await writeFile(join(dataDir, 'ports.json'), JSON.stringify(ports));
};

test('the demo ends 0 and leaves a video that plays, at -16 LUFS, with who made it and for how much', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'capstan demo-'));
  try {
    await rememberFreePorts(join(folder, 'data'));
    const { stdout } = await run(
      process.execPath,
      ['bin/capstan.mjs', 'demo', '--exit', '--data', join(folder, 'data')],
      { env: { ...process.env, NO_COLOR: '1' } },
    );
    const path = /^Video +(.+)$/m.exec(stdout)?.[1] ?? '';
    const tools = await locateMediaTools(folder);
    const facts = await probeMedia(tools, path, AbortSignal.timeout(10_000));
    expect(facts).toMatchObject({
      durationS: expect.closeTo(5, 0),
      hasAudio: true,
      video: { codec: 'h264' },
    });
    const meter = ['-i', path, '-af', 'ebur128', '-f', 'null', '-'];
    const printed = await runFfmpeg(tools, meter, AbortSignal.timeout(30_000));
    const loudness = Number(/Integrated loudness:\s+I: +(-?[\d.]+) LUFS/.exec(printed)?.[1]);
    expect(Math.abs(loudness + 16)).toBeLessThan(1);
    for (const step of ['join', 'mix', 'cover']) {
      expect(stdout).toMatch(new RegExp(`^${step} +\\$0 by [a-z-]+ at http://127.0.0.1:\\d+$`, 'm'));
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 180_000);
