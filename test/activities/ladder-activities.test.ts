import { ActivityCancellationDetails } from '@temporalio/common';
import { expect, it } from 'vitest';
import { createLadderActivities } from '../../src/activities/create-activities.ts';
import type { LadderService } from '../../src/services/escalation/ladder/ladder-service.ts';
import type { Advanced } from '../../src/services/escalation/ladder/stored-ladder.ts';
import { aMockActivity } from '../support/mock-activity.ts';

const place = { escalation_id: 'esc_1', transition: 3, command: { kind: 'end' } } as unknown as Advanced;

function activitiesOf(service: Partial<LadderService>) {
  return createLadderActivities(service as LadderService, 5);
}

it('a transition that was made answers where the ladder stands', async () => {
  const { advise } = activitiesOf({ advance: async () => place });
  expect(await aMockActivity().run(advise, {} as Parameters<typeof advise>[0])).toEqual(place);
});

it('a transition that cannot be made yet asks to come again', async () => {
  const { reviewed } = activitiesOf({ applyDecision: async () => ({ ...place, delay_ms: 400 }) });
  await expect(aMockActivity().run(reviewed, { review_id: 'rev_1' })).rejects.toMatchObject({
    type: 'unavailable',
    nonRetryable: false,
    nextRetryDelay: 400,
  });
});

it.each([
  ['ends as cancelled when its run is', { cancelRequested: true }, { name: 'CancelledFailure' }],
  ['asks to come again when its worker stops', { workerShutdown: true }, { type: 'unavailable' }],
])('a transition under way %s', async (_, details, failure) => {
  const environment = aMockActivity();
  const { executeLevel } = activitiesOf({
    advance: async ({ signal }) => {
      const stopped = new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()));
      environment.cancel('CANCELLED', new ActivityCancellationDetails(details));
      await stopped;
      return { ...place, delay_ms: 10 };
    },
  });
  const asked = {} as Parameters<typeof executeLevel>[0];
  await expect(environment.run(executeLevel, asked)).rejects.toMatchObject(failure);
});
