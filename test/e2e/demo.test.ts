import { execFile } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { RunSummary } from '@capstan/core/contracts/run';
import { StackFile } from '@capstan/core/contracts/stack';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { locateMediaTools } from '../../capabilities/media-tools/locate.ts';
import { probeMedia } from '../../capabilities/media-tools/probe.ts';
import { runFfmpeg } from '../../capabilities/media-tools/run-tool.ts';
import { launchBrowser, openPage } from '../../packages/console/test/support/browser.ts';
import { followLink, writeAndRun } from '../../packages/console/test/support/stranger.ts';
import { startStack } from '../../src/dev/stack.ts';
import { readProcessMark } from '../../src/dev/supervisor/child-process.ts';
import { listCodeBlocks, root } from '../docs/documents.ts';
import { type OpenDemo, openDemo } from '../support/demo.ts';
import { isLong } from '../support/long.ts';
import { waitFor } from '../support/wait.ts';

/** Follows what it printed, in a real browser. */
async function visitDemo(printed: string, video: string): Promise<void> {
  const browser = await launchBrowser();
  try {
    const [, link = ''] = /^Console +(\S+)$/m.exec(printed) ?? [];
    // There is no session before the link is followed.
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

/** Of the stack while it runs. */
function readStack(dataDir: string): StackFile {
  return StackFile.parse(JSON.parse(readFileSync(join(dataDir, 'stack.json'), 'utf8')));
}

function readWorkerLog(dataDir: string): string {
  return readFileSync(join(dataDir, 'logs', 'worker.log'), 'utf8');
}

async function expectReachable(dataDir: string): Promise<void> {
  expect(statSync(join(dataDir, 'stack.json')).mode & 0o777).toBe(0o600);
  const { api_url, api_key } = readStack(dataDir);
  const headers = { authorization: `Bearer ${api_key}` };
  expect((await fetch(`${api_url}/v1/capabilities`, { headers })).status).toBe(200);
}

async function expectNoSecond(dataDir: string): Promise<void> {
  const { api_url, pids } = readStack(dataDir);
  const options = { dataDir, port: 0, ephemeral: false, samples: false, environment: process.env };
  const second = startStack({ ...options, report: () => undefined });
  await expect(second).rejects.toThrow(`${dataDir} is in use by process ${pids.capstan}, at ${api_url}`);
}

/** Until there is another one. */
async function killWorker(dataDir: string): Promise<void> {
  const { pids } = readStack(dataDir);
  process.kill(pids.worker ?? 0, 'SIGKILL');
  await waitFor('another worker', () => readWorkerLog(dataDir).match(/worker is ready/g)?.length === 2);
  expect(readStack(dataDir).pids.worker).not.toBe(pids.worker);
}

function listLiving(pids: StackFile['pids']): readonly string[] {
  return Object.entries(pids).flatMap(([name, pid]) => (readProcessMark(pid) === null ? [] : [name]));
}

/**
 * One start for all: each continues where the one before it has left the stack. From the compiled package, which starts
 * in a third of the processor time; the long form uses the checkout.
 */
describe('the demo', () => {
  const WORKFLOW_BUNDLE = inject('workflowBundle');
  const place = isLong ? root : inject('packageFolder');
  let folder: string;
  let dataDir: string;
  let demo: OpenDemo | undefined;
  let video: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'capstan demo-'));
    dataDir = join(folder, 'data');
    demo = await openDemo({ folder: place, dataDir, environment: { WORKFLOW_BUNDLE } });
    video = /^Video +(.+)$/m.exec(demo.printed)?.[1] ?? '';
  });
  afterAll(async () => {
    await demo?.end();
    await rm(folder, { recursive: true, force: true });
  });

  it('makes a video, with its maker and cost', async () => {
    await examineVideo(folder, video);
    for (const step of ['join', 'mix', 'cover']) {
      const line = new RegExp(`^${step} +\\$0 by [a-z-]+ at http://127.0.0.1:\\d+$`, 'm');
      expect(demo?.printed).toMatch(line);
    }
  });

  it('writes clips for the first pipeline of the README, whose commands do what it describes', async () => {
    const script = listCodeBlocks('README.md').find(({ mark }) => mark === 'teaser')?.text ?? '';
    const own = script.replaceAll('.capstan/', `${dataDir.replaceAll(' ', '\\ ')}/`);
    const { stdout } = await promisify(execFile)('bash', ['-O', 'expand_aliases', '-euc', own], {
      cwd: place,
      env: { ...process.env, CAPSTAN_DATA: dataDir, NO_COLOR: '1' },
    });
    expect(stdout).toMatch(/^✓ Succeeded {2}teaser@1\.0/m);
    const { api_url, api_key } = readStack(dataDir);
    const headers = { authorization: `Bearer ${api_key}` };
    const answer = await fetch(`${api_url}/v1/runs?pipeline=teaser`, { headers });
    const { items } = (await answer.json()) as { readonly items: readonly RunSummary[] };
    expect(items).toMatchObject([{ state: 'succeeded', cost_usd: 0 }]);
    const path = join(dataDir, 'media', items[0]?.job_id ?? '', 'teaser.mp4');
    expect(existsSync(path), path).toBe(true);
  });

  it('is reachable by its file, and a second one in its folder is refused', async () => {
    await expectReachable(dataDir);
    await expectNoSecond(dataDir);
  });

  it.runIf(isLong)('survives a dead worker, and its link leads to where the video plays', async () => {
    await killWorker(dataDir);
    await visitDemo(demo?.printed ?? '', video);
  });

  it('ends without a rest', async () => {
    const { pids } = readStack(dataDir);
    expect(listLiving(pids)).toEqual(Object.keys(pids));
    expect(await demo?.end()).toBe(0);
    demo = undefined;
    expect(existsSync(join(dataDir, 'stack.json'))).toBe(false);
    expect(listLiving(pids)).toEqual([]);
    expect(readWorkerLog(dataDir)).toContain(`"workflow_bundle":"${WORKFLOW_BUNDLE}"`);
  });
});
