/**
 * A run's events as they happen, over SSE. Guarantees that every event is seen once and in order, through
 * broken connections and restarts of the server: each reconnect names the last event seen. Ends with the
 * run. A fault before the first answer is thrown at once; later ones only after about a minute of trying.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { RunEvent, terminalEvents } from '../../contracts/event.ts';
import { type ApiClient, toUnreachable } from '../client/api-client.ts';
import { readServerSentEvents } from '../client/server-sent-events.ts';
import { ProblemError, UnreachableError } from '../errors.ts';
import { runPath } from '../input/run-reference.ts';

export interface FollowOptions {
  /** Ends the stream quietly. */
  readonly signal: AbortSignal;
  /** Told when contact breaks and when it is back. */
  readonly onContact?: (state: 'lost' | 'back') => void;
}

/** The server writes a comment every 15 s; three missing mean that the connection is dead. */
const silenceLimitMs = 45_000;
const maxFailures = 16;
function backOffMs(failures: number): number {
  return Math.min(5_000, 100 * 2 ** failures);
}

function isTemporary(thrown: unknown): boolean {
  return (
    thrown instanceof UnreachableError ||
    (thrown instanceof ProblemError && (thrown.problem.status >= 500 || thrown.problem.status === 429))
  );
}

function parseEvent(data: string): RunEvent | undefined {
  try {
    return RunEvent.safeParse(JSON.parse(data)).data;
  } catch {
    return undefined;
  }
}

/** One connection. What is not an event of the run (a snapshot, types of a newer server) is passed over. */
async function* readOnce(
  client: ApiClient,
  runId: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const silence = new AbortController();
  const onSilence = () => silence.abort(new UnreachableError('the event stream went silent'));
  let timer = setTimeout(onSilence, silenceLimitMs);
  try {
    const { body } = await client.open(runPath(runId, '/events'), {
      headers: { accept: 'text/event-stream', ...(after === 0 ? {} : { 'last-event-id': String(after) }) },
      signal: AbortSignal.any([signal, silence.signal]),
    });
    const events = readServerSentEvents(body ?? new ReadableStream(), () => {
      clearTimeout(timer);
      timer = setTimeout(onSilence, silenceLimitMs);
    });
    for await (const { data } of events) {
      const event = parseEvent(data);
      if (event !== undefined && event.seq > after) yield event;
    }
  } finally {
    clearTimeout(timer);
  }
}

/** @throws ProblemError, UnreachableError */
export async function* followEvents(
  client: ApiClient,
  runId: string,
  { signal, onContact }: FollowOptions,
): AsyncGenerator<RunEvent> {
  let after = 0;
  let failures = 0;
  while (!signal.aborted) {
    try {
      for await (const event of readOnce(client, runId, after, signal)) {
        if (failures > 0) onContact?.('back');
        failures = 0;
        after = event.seq;
        yield event;
        if (terminalEvents.has(event.type)) return;
      }
    } catch (thrown) {
      if (signal.aborted) return;
      const fault = toUnreachable(client.connection.url, thrown);
      if (after === 0 || failures >= maxFailures || !isTemporary(fault)) throw fault;
    }
    failures += 1;
    if (failures > maxFailures) {
      throw new UnreachableError(`${client.connection.url} keeps closing the event stream of run ${runId}`);
    }
    onContact?.('lost');
    await delay(backOffMs(failures), undefined, { signal }).catch(() => undefined);
  }
}
