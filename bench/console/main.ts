/**
 * `npm run bench -- console [--json]`: what the page weighs, and whether it keeps up with a run of 2,000 steps and one of
 * 10,000, and with an hour of events, in a real Chromium against the embedded stack. Exit code 1 when a bar is missed.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { launchBrowser } from '../../packages/console/test/support/browser.ts';
import { startStack } from '../../src/dev/stack.ts';
import { bars, type ConsoleResult, missedBars, type RunMeasure } from './bars.ts';
import { measureMemory } from './measure-memory.ts';
import { measureFirstLoad, measureRun, openSignedIn } from './measure-page.ts';
import { measureUse } from './measure-use.ts';
import { startEcho, submitWaiting, submitWide } from './runs.ts';

const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });

async function measure(): Promise<ConsoleResult> {
  const stack = await startStack({
    dataDir: '',
    port: null,
    ephemeral: true,
    samples: false,
    report: ({ part, status, detail }) => status === 'failed' && console.error(`${part}: ${detail}`),
    environment: process.env,
  });
  const { info } = stack;
  const browser = await launchBrowser();
  const echo = await startEcho(info);
  try {
    const page = await openSignedIn(browser, info);
    const first_load_bytes = await measureFirstLoad(page);
    const live = await measureRun(page, info, await submitWide(info, bars.live.steps));
    const large = await measureRun(page, info, await submitWide(info, bars.large.steps));
    const use = await measureUse(page);
    const memory = await measureMemory(browser, info, await submitWaiting(info, bars.live.steps));
    return { first_load_bytes, live, large, use, memory };
  } finally {
    await browser.close();
    echo.close();
    await stack.stop();
  }
}

function describeRun(name: string, run: RunMeasure): string {
  return (
    `${name.padEnd(11)} ${run.steps} steps, first picture ${run.first_picture_ms} ms; watched while ${run.steps_ended} steps ended: ` +
    `${run.frames_per_second} frames/s, ${run.main_thread_ms_per_frame} ms of the page's thread each, longest task ${run.longest_task_ms} ms`
  );
}

function print({ first_load_bytes, live, large, use, memory }: ConsoleResult): void {
  const { model = 'unknown' } = cpus()[0] ?? {};
  console.log(`${new Date().toISOString()}  ${cpus().length} × ${model}, Node ${process.version}, no GPU\n`);
  console.log(`first load  ${Math.round(first_load_bytes / 1_000)} kB`);
  console.log(describeRun('live', live));
  console.log(describeRun('large', large));
  console.log(
    `use         dragged and zoomed: ${use.frames_per_second} frames/s, longest task ${use.longest_task_ms} ms; ` +
      `a step is shown ${use.select_ms} ms after the press`,
  );
  console.log(`memory      ${memory.before_mb} MB, after ${memory.frames} frames ${memory.after_mb} MB`);
}

const result = await measure();
const missed = missedBars(result);
if (values.json) console.log(JSON.stringify({ ...result, missed }));
else {
  print(result);
  for (const line of missed) console.log(`missed: ${line}`);
}
process.exit(missed.length === 0 ? 0 : 1);
