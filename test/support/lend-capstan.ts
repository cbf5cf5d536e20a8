/**
 * One Capstan for all test files of a run that need no settings of their own, started at the first request. A server
 * and its worker use processor time even when idle, so test workers share one.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Capstan, startCapstan } from './capstan.ts';

/** The data about it for a test worker. */
export type LentCapstan = Pick<Capstan, 'url' | 'key' | 'databaseUrl' | 'mediaUrl'>;

export interface Lender {
  readonly url: string;
  close(): Promise<void>;
}

/** A cancel is noticed with the next heartbeat. Its maintenance continues while others test. */
const settings = { HEARTBEAT_INTERVAL_MS: '500', MAINTENANCE_MS: '2000' };

/** @returns stops it */
type Start = (capstan: Capstan) => Promise<() => Promise<void>>;

/** @param startFleet starts and registers the instances for the console's tests */
export async function startLender(startFleet: Start): Promise<Lender> {
  let started: Promise<Capstan> | null = null;
  let fleet: ReturnType<Start> | null = null;
  const answers: Readonly<Record<string, (capstan: Capstan) => Promise<string>>> = {
    '/': async ({ url, key, databaseUrl, mediaUrl }) => JSON.stringify({ url, key, databaseUrl, mediaUrl }),
    '/logs': async ({ logs }) => logs(),
    '/fleet': async (capstan) => {
      fleet ??= startFleet(capstan);
      await fleet;
      return '';
    },
  };
  const server = createServer(({ url = '/' }, response) => {
    started ??= startCapstan(settings, { endsWithUs: true, takesLaterAnswers: true });
    started
      .then((capstan) => answers[url]?.(capstan))
      .then(
        (text) => response.end(text),
        (error) => response.writeHead(500).end(String(error)),
      );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.close();
      server.closeAllConnections();
      const parts = [fleet, started?.then(({ stop }) => stop)];
      for (const part of await Promise.allSettled(parts))
        if (part.status === 'fulfilled') await part.value?.();
    },
  };
}

async function ask(lender: string, path: string): Promise<string> {
  const answer = await fetch(lender + path);
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return text;
}

export async function borrowCapstan(lender: string): Promise<LentCapstan> {
  return JSON.parse(await ask(lender, '/')) as LentCapstan;
}

/** The whole output of its processes. */
export function readLentLogs(lender: string): Promise<string> {
  return ask(lender, '/logs');
}

export async function borrowFleet(lender: string): Promise<void> {
  await ask(lender, '/fleet');
}
