/**
 * Who receives events when much is due, and next to silent receivers. Receivers are played: they answer when a test
 * decides it.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { WebhookAnswer } from '../../../src/clients/webhook-sender.ts';
import { finishRun } from '../../../src/db/run/run.ts';
import { insertWebhook } from '../../../src/db/webhook/webhook.ts';
import { newId } from '../../../src/parts/ids.ts';
import { createWebhookDelivery } from '../../../src/use-cases/webhooks/delivery.ts';
import { useDatabase } from '../../support/database.ts';
import { aProject, aRun } from '../../support/factories.ts';
import { waitFor } from '../../support/wait.ts';

const { db } = useDatabase();

interface Asked {
  readonly url: string;
  readonly answer: (answer: WebhookAnswer) => void;
}

const taken: WebhookAnswer = { status: 204, error: null };
const silence: WebhookAnswer = { status: null, error: 'no answer: TimeoutError' };

let open: Asked[];
/** Default: they wait for the test. */
let hear: (asked: Asked) => void;
let delivery: ReturnType<typeof createWebhookDelivery>;
beforeEach(() => {
  open = [];
  hear = (asked) => void open.push(asked);
  const send = (url: string) =>
    new Promise<WebhookAnswer>((answer) => {
      hear({ url, answer });
    });
  delivery = createWebhookDelivery({ db, webhookSender: { send, close: () => Promise.resolve() } });
});
afterEach(async () => {
  hear = ({ answer }) => answer(taken);
  const stopped = delivery.close();
  for (const { answer } of open) answer(taken);
  await stopped;
  await db('webhook').delete();
});

async function aTold(names: readonly string[]): Promise<{ endRuns: (count: number) => Promise<void> }> {
  const { project_id } = await aProject(db);
  for (const name of names) {
    const webhook = {
      webhook_id: newId('webhook'),
      project_id,
      url: `http://${name}.test/`,
      secret: 'whsec_c2VjcmV0',
    };
    await insertWebhook(db, { ...webhook, events: ['run.ended'], created_by: 'key_1' }, 100);
  }
  return {
    endRuns: async (count) => {
      for (let run = 0; run < count; run++) {
        const { run_id } = await aRun(db, { project_id });
        await finishRun(db, { run_id, state: 'succeeded', output: null, error: null, step_ids: [] });
      }
    },
  };
}

function openAt(name: string): number {
  return open.filter(({ url }) => url.startsWith(`http://${name}`)).length;
}

test('all due events are sent in one round, some in parallel', async () => {
  const { endRuns } = await aTold(['one']);
  await endRuns(50);
  let atOnce = 0;
  let most = 0;
  hear = ({ answer }) => {
    atOnce += 1;
    most = Math.max(most, atOnce);
    setImmediate(() => {
      atOnce -= 1;
      answer(taken);
    });
  };
  await delivery.deliverDue();
  await waitFor('all to be told', async () => {
    const [row] = await db('webhook_delivery').where({ state: 'delivered' }).count('* as count');
    return Number(row?.count) === 50;
  });
  expect(most).toBeLessThanOrEqual(8);
});

test('no receiver waits for the events of others, however many they are and however silent', async () => {
  const many = await aTold(['dead1', 'dead2', 'dead3']);
  await many.endRuns(20);
  const one = await aTold(['live']);
  await one.endRuns(1);
  await delivery.deliverDue();
  await waitFor('the live one to be told', () => openAt('live') === 1);
  expect(openAt('dead')).toBe(16);
  await one.endRuns(1);
  await delivery.deliverDue();
  await waitFor('what comes later to be told too', () => openAt('live') === 2);
});

test('a receiver that did not answer gets one event at a time until it does', async () => {
  const { endRuns } = await aTold(['dead']);
  await endRuns(9);
  await delivery.deliverDue();
  await waitFor('eight tries', () => openAt('dead') === 8);
  const first = open.splice(0);
  for (const { answer } of first) answer(silence);
  await waitFor('the ninth', () => openAt('dead') === 1);
  const due = () =>
    db('webhook_delivery')
      .where({ attempts: 1 })
      .update({ next_try_at: db.raw('clock_timestamp()') });
  await waitFor('eight to be written', async () => (await due()) === 8);
  await delivery.deliverDue();
  expect(openAt('dead')).toBe(1);
  for (const { answer } of open.splice(0)) answer(taken);
  await waitFor('more at once', () => openAt('dead') > 1);
});
