import { WebhookEvent } from '@capstan/core/contracts/webhook';
import { expect, test } from 'vitest';
import { describeDelivery, describeTrouble, webhookEvents } from '../src/pages/settings/webhook-model.ts';

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

const good = { state: 'delivered', attempts: 1, status: 204 } as const;
const bad = { state: 'failed', attempts: 9, status: 500 } as const;
const trying = { state: 'pending', attempts: 2, status: null, error: 'connection refused' } as const;
const fresh = { state: 'pending', attempts: 0, status: null } as const;

test.each([
  [[fresh], null],
  [[good, bad, bad], null],
  [[fresh, trying, bad], 'No delivery arrived (0 of 2): connection refused'],
  [[bad, bad, good], 'The last 2 deliveries failed: answered 500'],
  [[trying, good], 'The last delivery failed: connection refused'],
])('%j, newest first, is described as %s', (deliveries, text) =>
  expect(describeTrouble(deliveries)).toBe(text),
);
