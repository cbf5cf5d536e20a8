import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { locateMediaTools } from '../../capabilities/media-tools/locate.ts';
import { probeMedia } from '../../capabilities/media-tools/probe.ts';
import { runFfmpeg } from '../../capabilities/media-tools/run-tool.ts';
import { launchBrowser, openPage } from '../console/support/browser.ts';
import { followLink, writeAndRun } from '../console/support/stranger.ts';
import { root } from '../docs/documents.ts';
import { openDemo } from '../support/demo.ts';

/** Follows what it printed, in a real browser. */
async function visitDemo(printed: string, video: string): Promise<void> {
  const browser = await launchBrowser();
  try {
    const [, link = ''] = /^Console +(\S+)$/m.exec(printed) ?? [];
    // Nobody is signed in before the link is followed.
    const opened = await openPage(browser, new URL(link).origin, {}, /401/);
    await followLink(opened, link);
    await writeAndRun(opened, video);
    opened.expectQuiet();
  } finally {
    await browser.close();
  }
}

/** It plays, at -16 LUFS. */
async function examineVideo(folder: string, path: string): Promise<void> {
  const tools = await locateMediaTools(folder);
  const facts = await probeMedia(tools, path, AbortSignal.timeout(60_000));
  expect(facts).toMatchObject({
    durationS: expect.closeTo(5, 0),
    hasAudio: true,
    video: { codec: 'h264' },
  });
  const meter = ['-i', path, '-af', 'ebur128', '-f', 'null', '-'];
  const printed = await runFfmpeg(tools, meter, AbortSignal.timeout(60_000));
  const loudness = Number(/Integrated loudness:\s+I: +(-?[\d.]+) LUFS/.exec(printed)?.[1]);
  expect(Math.abs(loudness + 16)).toBeLessThan(1);
}

test('the demo of a checkout leaves a video, with who made it and for how much, and a link to where it plays', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'capstan demo-'));
  const WORKFLOW_BUNDLE = inject('workflowBundle');
  const dataDir = join(folder, 'data');
  try {
    const { printed, end } = await openDemo({ folder: root, dataDir, environment: { WORKFLOW_BUNDLE } });
    try {
      const path = /^Video +(.+)$/m.exec(printed)?.[1] ?? '';
      await examineVideo(folder, path);
      for (const step of ['join', 'mix', 'cover']) {
        expect(printed).toMatch(new RegExp(`^${step} +\\$0 by [a-z-]+ at http://127.0.0.1:\\d+$`, 'm'));
      }
      await visitDemo(printed, path);
    } finally {
      expect(await end()).toBe(0);
    }
    const log = await readFile(join(dataDir, 'logs', 'worker.log'), 'utf8');
    expect(log).toContain(`"workflow_bundle":"${WORKFLOW_BUNDLE}"`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
