/** The stream of a project, read as it comes. */

import type { StreamFrame } from '@capstan/core/contracts/event';
import { readServerSentEvents } from '../../src/cli/watch/events.ts';
import type { TestApi } from './api.ts';
import { waitFor } from './wait.ts';

type Kind = StreamFrame['kind'];
type DataOf<K extends Kind> = Extract<StreamFrame, { kind: K }>['data'];

/** Events wait for transactions of the whole Postgres server, including those of parallel tests. */
const horizonMs = 280_000;

export interface SeenFrame {
  readonly kind: Kind;
  readonly data: unknown;
  readonly id: string | undefined;
}

export interface ProjectStream {
  readonly status: number;
  readonly frames: readonly SeenFrame[];
  readonly isOver: () => boolean;
  /** Waits for the last one of a kind that matches. */
  readonly next: <K extends Kind>(kind: K, fits?: (data: DataOf<K>) => boolean) => Promise<DataOf<K>>;
  /** @returns its position */
  readonly close: () => Promise<string>;
}

/** @param query without the question mark */
export async function openStream(
  api: Pick<TestApi, 'call'>,
  query = '',
  headers: Record<string, string> = {},
): Promise<ProjectStream> {
  const answer = await api.call(`/v1/stream?${query}`, { headers });
  const frames: SeenFrame[] = [];
  let isOver = false;
  let hasBegun = false;
  const reader = answer.body?.getReader();
  async function* chunks() {
    for (;;) {
      const { value, done } = (await reader?.read()) ?? { done: true };
      if (done || value === undefined) return;
      yield value;
    }
  }
  const begin = (): void => {
    hasBegun = true;
  };
  const read = async (): Promise<void> => {
    for await (const { event, data, id } of readServerSentEvents(chunks(), begin))
      frames.push({ kind: event as Kind, data: JSON.parse(data), id });
  };
  read()
    .catch(() => undefined)
    .finally(() => {
      isOver = true;
    });
  await waitFor('the stream to begin', () => hasBegun || isOver);
  return {
    status: answer.status,
    frames,
    isOver: () => isOver,
    next: (kind, fits = () => true) =>
      waitFor(
        `a frame ${kind}`,
        () => {
          const found = frames.findLast((frame) => frame.kind === kind && fits(frame.data as never));
          return found?.data as never;
        },
        horizonMs,
      ),
    close: async () => {
      await reader?.cancel().catch(() => undefined);
      return frames.findLast(({ id }) => id !== undefined)?.id ?? '';
    },
  };
}
