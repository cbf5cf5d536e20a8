/**
 * An hour of events, played as fast as the page takes them: ten a second, of a run that is open and of other runs. They
 * arrive as the stream's do; the page reads again from the server as they require.
 */

import type { StackFile } from '@capstan/core/contracts/stack';
import type { Browser, Page } from 'playwright-core';
import { openPage, signIn } from '../../packages/console/test/support/browser.ts';
import type { MemoryMeasure } from './bars.ts';
import type { Submitted } from './runs.ts';

const frames = 36_000;
/** Handed on between two pictures. */
const perPicture = 120;

/** The streams that the page opens are known to the bench. */
const keepStreams = `(() => {
  window.benchStreams = [];
  const Original = window.EventSource;
  window.EventSource = class extends Original {
    constructor(...given) { super(...given); window.benchStreams.push(this); }
  };
})()`;

function playFrames(runId: string, steps: number): string {
  return `new Promise((resolve) => {
    const stream = window.benchStreams.at(-1);
    const send = (kind, data) => stream.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(data), lastEventId: stream.benchLast ?? '' }));
    const stepEvents = ['step.started', 'step.routed', 'step.retrying'];
    let sent = 0;
    const play = () => {
      for (let index = 0; index < ${perPicture}; index++, sent++) {
        const at = new Date(Date.now() + sent * 100).toISOString();
        if (sent % 4 === 0) {
          const run_id = 'run_' + String(Math.floor(sent / 12)).padStart(12, '0');
          send('run', { run_id, pipeline: 'other', state: ['running', 'running', 'succeeded'][(sent / 4) % 3], awaiting: [], cost_usd: sent / 1e6, reserved_usd: 0, steps: { running: 3, succeeded: sent % 40 } });
        } else {
          const type = stepEvents[sent % 3];
          send('step', { seq: 1e7 + sent, run_id: '${runId}', at, type, step_id: 's' + (sent % ${steps}), attempt: 1, data: { endpoint: 'http://127.0.0.1:1' } });
        }
      }
      if (sent >= ${frames}) resolve(null); else requestAnimationFrame(play);
    };
    play();
  })`;
}

async function readHeap(page: Page): Promise<number> {
  const debug = await page.context().newCDPSession(page);
  await debug.send('HeapProfiler.collectGarbage');
  await debug.send('HeapProfiler.collectGarbage');
  const { usedSize } = await debug.send('Runtime.getHeapUsage');
  await debug.detach();
  return Math.round(usedSize / 100_000) / 10;
}

const settledMs = 4_000;

export async function measureMemory(
  browser: Browser,
  { api_url, api_key }: StackFile,
  { runId, steps }: Submitted,
): Promise<MemoryMeasure> {
  const opened = await openPage(browser, api_url);
  const { page } = opened;
  await signIn(opened, api_url, api_key);
  await page.addInitScript(keepStreams);
  await opened.go(`/runs/${runId}`);
  await page.locator('.react-flow canvas').waitFor();
  await page.waitForTimeout(settledMs);
  const before_mb = await readHeap(page);
  await page.evaluate(playFrames(runId, steps));
  await page.waitForTimeout(settledMs);
  const after_mb = await readHeap(page);
  await opened.close();
  return { frames, before_mb, after_mb };
}
