import type { Advanced } from '@capstan/core/workflow-payloads';
import { ActivityCancellationDetails } from '@temporalio/common';
import { expect, it } from 'vitest';
import { asLadderActivity } from '../../src/activities/create-activities.ts';
import { aMockActivity } from '../support/mock-activity.ts';

const place = { escalation_id: 'esc_1', transition: 3, command: { kind: 'end' } } as unknown as Advanced;

function run(transition: Parameters<typeof asLadderActivity>[1], environment = aMockActivity()) {
  return environment.run(() => asLadderActivity(5, transition));
}

it('a transition that was made returns the state of the ladder', async () => {
  expect(await run(async () => place)).toEqual(place);
});

it('a transition that cannot be made yet asks to come again', async () => {
  await expect(run(async () => ({ ...place, delay_ms: 400 }))).rejects.toMatchObject({
    type: 'unavailable',
    nonRetryable: false,
    nextRetryDelay: 400,
  });
});

it.each([
  ['ends as cancelled when its run is', { cancelRequested: true }, { name: 'CancelledFailure' }],
  ['asks to come again when its worker stops', { workerShutdown: true }, { type: 'unavailable' }],
])('a running transition %s', async (_, details, failure) => {
  const environment = aMockActivity();
  const transition = async (signal: AbortSignal): Promise<Advanced> => {
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    environment.cancel('CANCELLED', new ActivityCancellationDetails(details));
    await stopped;
    return { ...place, delay_ms: 10 };
  };
  await expect(run(transition, environment)).rejects.toMatchObject(failure);
});
