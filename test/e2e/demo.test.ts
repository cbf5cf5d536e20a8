import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { locateMediaTools } from '../../capabilities/media-tools/locate.ts';
import { probeMedia } from '../../capabilities/media-tools/probe.ts';
import { runFfmpeg } from '../../capabilities/media-tools/run-tool.ts';
import { root } from '../docs/documents.ts';
import { runDemo } from '../support/demo.ts';

test('the demo of a checkout ends 0 and leaves a video that plays, at -16 LUFS, with who made it and for how much', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'capstan demo-'));
  try {
    const WORKFLOW_BUNDLE = inject('workflowBundle');
    const dataDir = join(folder, 'data');
    const stdout = await runDemo({ folder: root, dataDir, environment: { WORKFLOW_BUNDLE } });
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
    const log = await readFile(join(dataDir, 'logs', 'worker.log'), 'utf8');
    expect(log).toContain(`"workflow_bundle":"${WORKFLOW_BUNDLE}"`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 180_000);
