import { expect, test } from 'vitest';
import { describeDelivery, webhookEvents } from '../../console/src/pages/settings/webhook-model.ts';
import { WebhookEvent } from '../../src/contracts/webhook.ts';

test('every event can be chosen', () => expect(webhookEvents).toEqual(WebhookEvent.options));

test.each([
  [{ state: 'delivered', attempts: 1, status: 204 }, 'delivered, answered 204'],
  [{ state: 'pending', attempts: 0, status: null }, 'about to be sent'],
  [{ state: 'pending', attempts: 2, status: 503 }, '2 tries so far: answered 503'],
  [
    { state: 'failed', attempts: 9, status: null, error: 'connection refused' },
    'given up after 9 tries: connection refused',
  ],
  [{ state: 'failed', attempts: 1, status: null }, 'given up after 1 try: no answer'],
] as const)('%j reads %s', (delivery, text) => expect(describeDelivery(delivery).text).toBe(text));
