/**
 * `npm run bench:console [-- --json]`: what the page weighs, and whether it keeps up with a run of 2,000 steps and one of
 * 10,000, in a real Chromium against the embedded stack. Exit code 1 when a bar is missed.
 */
import { parseArgs } from 'node:util';
import { startStack } from '../../src/dev/stack.ts';
import { launchBrowser } from '../../test/console/support/browser.ts';
import { bars, type ConsoleResult, missedBars } from './bars.ts';
import { measureFirstLoad, measureRun, openSignedIn } from './measure-page.ts';
import { startEcho, submitWide } from './runs.ts';

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
  const browser = await launchBrowser();
  const echo = await startEcho(stack.info);
  try {
    const page = await openSignedIn(browser, stack.info);
    const first_load_bytes = await measureFirstLoad(page);
    const live = await measureRun(page, stack.info, await submitWide(stack.info, bars.live.steps));
    const large = await measureRun(page, stack.info, await submitWide(stack.info, bars.large.steps));
    return { first_load_bytes, live, large };
  } finally {
    await browser.close();
    echo.close();
    await stack.stop();
  }
}

const result = await measure();
const missed = missedBars(result);
if (values.json) console.log(JSON.stringify({ ...result, missed }));
else {
  console.log(`first load     ${Math.round(result.first_load_bytes / 1_000)} kB`);
  for (const [name, { first_picture_ms, frames_per_second, steps }] of Object.entries({
    live: result.live,
    large: result.large,
  })) {
    console.log(
      `${name.padEnd(14)} ${steps} steps, first picture ${first_picture_ms} ms, ${frames_per_second} frames/s`,
    );
  }
  for (const line of missed) console.log(`missed: ${line}`);
}
process.exit(missed.length === 0 ? 0 : 1);
