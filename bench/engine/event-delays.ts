/** How long an event of a run takes to those who watch: from its row's `at` to its arrival on an open stream. */
import { readServerSentEvents } from '../../src/cli/watch/events.ts';
import type { CapstanApi } from './capstan-api.ts';

/** Events from before the stream was open do not count. @returns milliseconds */
export async function followRun(api: CapstanApi, runId: string): Promise<number[]> {
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
