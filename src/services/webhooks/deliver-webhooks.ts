/** Finds what happened and tells it: each thing at least once, again after longer and longer pauses until it is taken. */
import type { WebhookSender } from '../../clients/webhook-sender.ts';
import type { Db } from '../../db/connect.ts';
import {
  type DeliveryEnd,
  type DueDelivery,
  endDelivery,
  takeDueDeliveries,
} from '../../db/webhook/webhook-delivery.ts';
import { findHappenings } from '../../db/webhook/webhook-find.ts';
import { signDelivery } from './sign-delivery.ts';

const seconds = 1_000;
const minutes = 60 * seconds;
const hours = 60 * minutes;
/** Before the second try, the third, … Together about a day. */
const pauses = [
  5 * seconds,
  30 * seconds,
  2 * minutes,
  10 * minutes,
  hours,
  3 * hours,
  6 * hours,
  12 * hours,
];
const atOnce = 20;
const leaseMs = minutes;

export interface WebhookDeliveryDependencies {
  readonly db: Db;
  readonly sender: WebhookSender;
}

type Told = Pick<DueDelivery, 'delivery_id' | 'url' | 'secret' | 'payload'>;

/** One try. */
export async function tell(
  sender: WebhookSender,
  { delivery_id, url, secret, payload }: Told,
  canComeAgain: number | null,
): Promise<DeliveryEnd> {
  const body = JSON.stringify(payload);
  const signed = { id: delivery_id, seconds: Math.floor(Date.now() / 1_000), body };
  const { status, error } = await sender.send(url, signDelivery(secret, signed), body);
  return { delivery_id, status, error, againInMs: error === null ? null : canComeAgain };
}

export function createWebhookDelivery({ db, sender }: WebhookDeliveryDependencies) {
  return {
    /** @returns how many were told or tried */
    deliverDue: async (): Promise<number> => {
      await findHappenings(db);
      const due = await takeDueDeliveries(db, { limit: atOnce, leaseMs });
      await Promise.all(
        due.map(async (one) => endDelivery(db, await tell(sender, one, pauses[one.attempts] ?? null))),
      );
      return due.length;
    },
  };
}

export type WebhookDuty = ReturnType<typeof createWebhookDelivery>;
