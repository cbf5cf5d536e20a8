/** How long an event of a run takes to those who watch: from its row's `at` to its arrival on an open stream. */
import { readServerSentEvents } from '../../src/cli/client/server-sent-events.ts';
import type { CapstanApi } from './capstan-api.ts';
import { startRun } from './capstan-side.ts';
import { dispatchShape, makeText } from './shapes.ts';

/** Events from before the stream was open do not count. @returns milliseconds */
async function followRun(api: CapstanApi): Promise<number[]> {
  const runId = await startRun(api, dispatchShape, { text: makeText() });
  const stream = await api.stream(`/v1/runs/${runId}/events`);
  const openedAt = Date.now();
  let arrivedAt = openedAt;
  let last = '';
  const delays: number[] = [];
  const events = readServerSentEvents(stream, () => {
    arrivedAt = Date.now();
  });
  for await (const { event, data } of events) {
    last = event;
    const at = Date.parse((JSON.parse(data) as { at: string }).at);
    if (at >= openedAt) delays.push(arrivedAt - at);
  }
  if (last !== 'run.succeeded') throw new Error(`the stream of ${runId} ended after ${last || 'nothing'}`);
  return delays;
}

/** @param count of runs, one at a time @returns milliseconds of all their events */
export async function measureEventDelays(api: CapstanApi, count: number): Promise<readonly number[]> {
  const delays: number[] = [];
  for (let run = 0; run < count; run++) delays.push(...(await followRun(api)));
  return delays;
}
