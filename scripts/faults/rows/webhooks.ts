/** A silent receiver of webhooks, next to one that answers. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { waitFor } from '../../../test/support/wait.ts';
import { playUnderLoad, type Stage } from '../play.ts';
import { atLeast, atMost, joinVerdicts, type Verdict } from '../verdict.ts';

interface Receiver {
  readonly webhookId: string;
  readonly server: Server;
}

interface Told {
  readonly data: { readonly run_id: string; readonly finished_at: string };
}

async function startReceiver({ api }: Stage, answer: RequestListener): Promise<Receiver> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const body = { url, events: ['run.ended'] };
  const made = await api.request<{ webhook_id: string }>('POST', '/v1/webhooks', body);
  if (made.status !== 201) throw new Error(`a webhook was answered with ${made.status}`);
  return { webhookId: made.body.webhook_id, server };
}

async function stopReceiver({ api }: Stage, { webhookId, server }: Receiver): Promise<void> {
  await api.request('DELETE', `/v1/webhooks/${webhookId}`);
  server.closeAllConnections();
  server.close();
}

export async function silenceWebhook(stage: Stage): Promise<Verdict> {
  const count = stage.isLong ? 600 : 60;
  const delays = new Map<string, number>();
  let kept = 0;
  const silent = await startReceiver(stage, () => {
    kept += 1;
  });
  const live = await startReceiver(stage, async (request, response) => {
    const { data } = (await json(request)) as Told;
    delays.set(data.run_id, (Date.now() - Date.parse(data.finished_at)) / 1_000);
    response.writeHead(204).end();
  });
  try {
    return await playUnderLoad(
      stage,
      { name: 'webhook-silent', count, pace: 10, last: 0 },
      {
        disturb: async ({ client }) => {
          const isTold = () => client.submissions.runs.size === count && delays.size >= count;
          await waitFor('all ends to be told', isTold, 300_000);
          return joinVerdicts([
            atLeast('deliveries without an answer', kept, 1),
            atMost('longest from an end to its delivery s', Math.max(...delays.values()), 5),
          ]);
        },
      },
    );
  } finally {
    await Promise.all([stopReceiver(stage, silent), stopReceiver(stage, live)]);
  }
}
