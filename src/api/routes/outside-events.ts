/** Outside events, which steps with `event` wait for. */
import { EventReceipt, EventRequest } from '@capstan/core/contracts/outside-event';
import { EventName } from '@capstan/core/contracts/primitives';
import { z } from 'zod';
import { sendEvent } from '../../use-cases/outside-events/sending.ts';
import { json } from '../input.ts';
import { type Route, route } from '../route.ts';

export const outsideEventRoutes: readonly Route[] = [
  route('POST /v1/events/{name}', {
    operation: 'send_event',
    tag: 'runs',
    summary: 'Send an event to the steps that wait for it',
    description:
      'Every step of the project that waits for this name and key takes the payload as its output. The event is kept for a day: a step that begins to wait later takes it if it came since its run began, or if no step has taken it. A payload that no waiting step takes is refused, and the steps continue to wait. An event with the `id` of an earlier one of its name changes nothing.',
    scope: 'run:write',
    params: z.object({ name: EventName }),
    body: json(EventRequest, 'data'),
    responses: { 202: EventReceipt },
    errors: ['media_unknown', 'limit_reached'],
    handle: async (ctx, { caller: { project_id, key_id: sent_by }, params: { name }, body }) => {
      const receipt = await sendEvent(ctx, { project_id, sent_by, name, request: body });
      return { status: 202, body: receipt };
    },
  }),
];
