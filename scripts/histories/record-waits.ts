/** Runs whose steps wait for what comes from outside, and for child runs that wait for people. */
import type { Run } from '@capstan/core/contracts/run';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { answer, startInstance } from '../../test/support/fleet.ts';
import { decide } from '../../test/support/reviews.ts';
import { waitFor } from '../../test/support/wait.ts';
import { type FeatureRecorders, type Recording, step } from './recording.ts';

async function recordEvent({ submit, keep, awaiting, request }: Recording): Promise<void> {
  const run = await submit([
    { id: 'paid', event: { name: 'order.paid', key: '7' } },
    { id: 'late', event: { name: 'order.sent', timeout: '300ms', on_timeout: 'continue' } },
    step('last', { input: { sum: '{{ steps.paid.output.sum }}' } }),
  ]);
  await awaiting(run.run_id, 'event');
  await waitFor('the other event to be given up', async () => {
    const { body } = await request<Run>('GET', `/v1/runs/${run.run_id}`);
    return body.steps.find(({ id }) => id === 'late')?.finished_at != null;
  });
  await request('POST', '/v1/events/order.paid', { key: '7', payload: { sum: 12 } });
  await keep('event', run.run_id);
}

async function recordAnsweredLater(recording: Recording): Promise<void> {
  const { submit, keep, awaiting } = recording;
  const later = await startInstance(recording, { name: 'later', async: { slot: 'freed' } });
  const address: string[] = [];
  later.handle = ({ headers }, response) => {
    address.push(String(headers['x-callback-url']));
    answer(response, 202, { ok: true });
  };
  const run = await submit([
    { ...step('first'), capability: 'later' },
    step('last', { input: { text: '{{ steps.first.output.text }}' } }),
  ]);
  await awaiting(run.run_id, 'callback');
  const body = JSON.stringify({ ok: true, output: { text: 'rendered' } });
  await fetch(String(address[0]), { method: 'POST', body });
  await keep('answered-later', run.run_id);
  await later.stop();
}

/** The calls of the child run beside its review are many enough that it continues as new when it begins to rest. */
async function recordRested(recording: Recording): Promise<void> {
  const { submit, keep, keepAll, questionOf, request } = recording;
  const calls = { items: Array.from({ length: 30 }, (_, at) => at), max_parallel: 30 };
  const steps = [{ id: 'ask', review: { title: 'Go on?' } }, step('calls', { for_each: calls })];
  await request('POST', '/v1/pipelines', { pipeline: 'asking', version: '1', steps });
  const each = { items: [1, 2], max_parallel: 1 };
  const run = await submit([
    { id: 'each', pipeline: 'asking@1', for_each: each },
    step('last', { depends_on: ['each'] }),
  ]);
  const children = await waitFor('both child runs', async () => {
    const path = `/v1/runs/${run.run_id}/steps/each/items`;
    const { items } = (await request<{ items: RunStep[] }>('GET', path)).body;
    const found = items.flatMap(({ sub_run_id }) => sub_run_id ?? []);
    return found.length === 2 ? found : undefined;
  });
  for (const child of children) {
    await waitFor('its calls to end', async () => {
      const { body } = await request<Run>('GET', `/v1/runs/${child}`);
      return body.steps.find(({ id }) => id === 'calls')?.finished_at != null;
    });
    await decide(recording, await questionOf(child), { action: 'output', output: {} });
  }
  await keep('rested', run.run_id);
  await keepAll('resting', String(children[0]));
}

export const waitRecorders: FeatureRecorders = {
  event: recordEvent,
  'answered-later': recordAnsweredLater,
  rested: recordRested,
};
