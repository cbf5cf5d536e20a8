/** Webhooks and their deliveries in words. */
import type { WebhookDelivery, WebhookEvent } from '@capstan/core/contracts/webhook';
import type { Tone } from '../../shared/state.ts';

export const eventWords: Readonly<Record<WebhookEvent, string>> = {
  'run.ended': 'a run has ended',
  'review.opened': 'a person is asked',
  'budget.reached': '50, 80 or 100 % of the day is spent',
  'instance.down': 'an instance is down',
};

export const webhookEvents = Object.keys(eventWords) as readonly WebhookEvent[];

interface ShownDelivery {
  readonly text: string;
  readonly tone: Tone;
}

function countTries(attempts: number): string {
  return attempts === 1 ? '1 try' : `${attempts} tries`;
}

type ToldDelivery = Pick<WebhookDelivery, 'state' | 'attempts' | 'status' | 'error'>;

export function describeDelivery({ state, attempts, status, error }: ToldDelivery): ShownDelivery {
  const why = error ?? (status === null ? 'no answer' : `answered ${status}`);
  switch (state) {
    case 'delivered':
      return { text: `delivered, answered ${status ?? 'with nothing'}`, tone: 'done' };
    case 'failed':
      return { text: `given up after ${countTries(attempts)}: ${why}`, tone: 'failed' };
    case 'pending':
      return attempts === 0
        ? { text: 'about to be sent', tone: 'running' }
        : { text: `${countTries(attempts)} so far: ${why}`, tone: 'waiting' };
  }
}

/** The recent failures of an address; null while there are none. @param deliveries newest first */
export function describeTrouble(deliveries: readonly ToldDelivery[]): string | null {
  const tried = deliveries.filter(({ attempts }) => attempts > 0);
  const lastGood = tried.findIndex(({ state }) => state === 'delivered');
  const failing = lastGood === -1 ? tried.length : lastGood;
  const [newest] = tried;
  if (newest === undefined || failing === 0) return null;
  const why = newest.error ?? (newest.status === null ? 'no answer' : `answered ${newest.status}`);
  const many = failing === 1 ? 'The last delivery failed' : `The last ${failing} deliveries failed`;
  return `${lastGood === -1 ? `No delivery arrived (0 of ${tried.length})` : many}: ${why}`;
}
