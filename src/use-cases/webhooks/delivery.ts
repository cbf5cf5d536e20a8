/**
 * Finds events for webhooks and delivers them, signed: each at least once, with growing pauses between attempts until
 * it is accepted.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { writeJson } from '@capstan/core/json/text';
import { createTally } from '@capstan/core/tally';
import { LRUCache } from 'lru-cache';
import type { WebhookSender } from '../../clients/webhook-sender.ts';
import type { ServerCtx } from '../../context.ts';
import {
  type DeliveryEnd,
  type DeliveryRoom,
  type DueDelivery,
  endDelivery,
  findHappenings,
  takeDueDeliveries,
} from '../../db/webhook/webhook.ts';

// The headers that prove to a receiver the sender, the content and the age of a delivery: those of Standard Webhooks,
// so that its libraries check them.

const prefix = 'whsec_';

export function newWebhookSecret(): string {
  return `${prefix}${randomBytes(32).toString('base64')}`;
}

/** @param seconds Unix time of this attempt */
function signDelivery(
  secret: string,
  { id, seconds, body }: { readonly id: string; readonly seconds: number; readonly body: string },
): Record<string, string> {
  const key = Buffer.from(secret.slice(prefix.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': `v1,${signature}` };
}

const seconds = 1_000;
const minutes = 60 * seconds;
const hours = 60 * minutes;
/** Before the second attempt, the third, … Together about a day. */
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
/**
 * Deliveries in flight: in total, per webhook, per project. A silent receiver blocks each of its own for ten seconds.
 */
const most = { all: 256, ofWebhook: 8, ofProject: 16 } as const;
const leaseMs = minutes;
/** Longer than any pause: a webhook that still fails is silent again by then. */
const silentLastsMs = 13 * hours;
/** Each is named in every statement that takes deliveries. */
const mostSilent = 1_000;

type WebhookCtx = Pick<ServerCtx, 'db' | 'webhookSender'>;

type Told = Pick<DueDelivery, 'delivery_id' | 'url' | 'secret' | 'payload'>;

/** One attempt. */
export async function tell(
  sender: WebhookSender,
  { delivery_id, url, secret, payload }: Told,
  canComeAgain: number | null,
): Promise<DeliveryEnd> {
  const body = writeJson(payload);
  const signed = { id: delivery_id, seconds: Math.floor(Date.now() / 1_000), body };
  const { status, error } = await sender.send(url, signDelivery(secret, signed), body);
  return { delivery_id, status, error, againInMs: error === null ? null : canComeAgain };
}

/** Limits the deliveries in flight: each receiver has a share, and a silent one gets one at a time. */
export function createShares() {
  const webhooks = createTally();
  const projects = createTally();
  // A webhook that was deleted while it was silent gets no further attempt, so it is forgotten by time or number.
  const silent = new LRUCache<string, true>({ max: mostSilent, ttl: silentLastsMs });
  let all = 0;
  return {
    room: (): DeliveryRoom => ({
      all: most.all - all,
      ofWebhook: most.ofWebhook,
      ofProject: most.ofProject,
      left: {
        webhooks: new Map(
          [...new Set([...silent.keys(), ...webhooks.entries.keys()])].map((id) => [
            id,
            Math.max(0, (silent.has(id) ? 1 : most.ofWebhook) - webhooks.of(id)),
          ]),
        ),
        projects: new Map(
          [...projects.entries].map(([id, busy]) => [id, Math.max(0, most.ofProject - busy)]),
        ),
      },
    }),
    add: ({ webhook_id, project_id }: DueDelivery, by: 1 | -1): void => {
      webhooks.add(webhook_id, by);
      projects.add(project_id, by);
      all += by;
    },
    note: (webhookId: string, hasAnswered: boolean): void => {
      if (hasAnswered) silent.delete(webhookId);
      else silent.set(webhookId, true);
    },
  };
}

/** Takes turns with `work`: a call during a run gets the result of that run, and `work` runs once more after it. */
function createCoalesced(work: () => Promise<number>): () => Promise<number> {
  let underWay: Promise<number> | null = null;
  let isAskedAgain = false;
  const ask = (): Promise<number> => {
    isAskedAgain = underWay !== null;
    underWay ??= work().finally(() => {
      underWay = null;
      if (isAskedAgain) void ask().catch(() => undefined); // the next tick does it
    });
    return underWay;
  };
  return ask;
}

async function deliver({ db, webhookSender }: WebhookCtx, one: DueDelivery): Promise<DeliveryEnd> {
  const end = await tell(webhookSender, one, pauses[one.attempts] ?? null);
  await endDelivery(db, end);
  return end;
}

export function createWebhookDelivery(ctx: WebhookCtx) {
  const { db } = ctx;
  const shares = createShares();
  const underWay = new Set<Promise<void>>();
  let isStopped = false;

  const takeDue = createCoalesced(async () => {
    const due = isStopped ? [] : await takeDueDeliveries(db, { room: shares.room(), leaseMs });
    for (const one of due) {
      shares.add(one, 1);
      const leave = (): void => {
        shares.add(one, -1);
        underWay.delete(task);
        void takeDue().catch(() => undefined); // the next tick takes it
      };
      const task = deliver(ctx, one)
        .then(({ status }) => shares.note(one.webhook_id, status !== null))
        .then(leave, leave); // an unwritten end makes it due again after the lease
      underWay.add(task);
    }
    return due.length;
  });

  return {
    /** Begins the due deliveries; as one ends, the next begins. @returns how many have begun */
    deliverDue: async (): Promise<number> => {
      await findHappenings(db);
      return takeDue();
    },

    /** Begins nothing more. @returns when the deliveries in flight have ended */
    close: async (): Promise<void> => {
      isStopped = true;
      await takeDue().catch(() => undefined);
      await Promise.all(underWay);
    },
  };
}

export type WebhookDuty = Pick<ReturnType<typeof createWebhookDelivery>, 'deliverDue'>;
