/**
 * Sends a webhook by POST, to allowed addresses alone, as with instances; a redirect is a failure, and the answer is
 * not read.
 */
import type { DialGuard } from '@capstan/guarded-dial/guarded-dial';

export interface WebhookAnswer {
  /** Null: no answer. */
  readonly status: number | null;
  /** Null: taken. */
  readonly error: string | null;
}

export interface WebhookSender {
  /** Never throws for what the other side does. */
  send(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<WebhookAnswer>;
  close(): Promise<void>;
}

const deadlineMs = 10_000;

function codeOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return 'failed';
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : thrown.name;
  return code === 'ADDRESS_REFUSED' ? thrown.message : code;
}

export function createWebhookSender(guard: DialGuard): WebhookSender {
  const agent = guard.createAgent({
    pipelining: 0,
    connectTimeoutMs: 3_000,
    headersTimeout: deadlineMs,
    bodyTimeout: deadlineMs,
  });
  return {
    send: async (url, headers, body) => {
      const { origin, pathname, search } = new URL(url);
      try {
        const { statusCode: status, body: answer } = await agent.request({
          origin,
          path: `${pathname}${search}`,
          method: 'POST',
          headers: { 'content-type': 'application/json', 'user-agent': 'capstan', ...headers },
          body,
          signal: AbortSignal.timeout(deadlineMs),
        });
        await answer.dump({ limit: 65_536 }).catch(() => undefined);
        const isTaken = status >= 200 && status < 300;
        return { status, error: isTaken ? null : `answered ${status}` };
      } catch (error) {
        return { status: null, error: `no answer: ${codeOf(error)}` };
      }
    },
    close: () => agent.destroy(),
  };
}
