/**
 * A live stream of a run's events over SSE, each shown as one line. Every event is delivered once and in order, across
 * broken connections and server restarts: each reconnect names the last event received. The stream ends with the run.
 * An error before the first event is thrown at once; later errors only after about a minute of retries.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isAtLeast, readStepLog } from '@capstan/core/call/log-lines';
import { type LogLevel, RunEvent, type StepLogData, terminalEvents } from '@capstan/core/contracts/event';
import type { Json } from '@capstan/core/contracts/primitives';
import { describeDecided } from '@capstan/core/repair/describe-decided';
import { type ApiClient, path, toUnreachable } from '../client/api-client.ts';
import { ProblemError, UnreachableError } from '../errors.ts';
import { formatDuration, formatUsd } from '../render/formats.ts';
import type { Style } from '../render/print.ts';

/** Reads a `text/event-stream` body, in chunks of any size, by the HTML standard. */
interface ServerSentEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

interface EventDraft {
  id: string | undefined;
  event: string;
  data: string[];
}

function emptyDraft(id: string | undefined): EventDraft {
  return { id, event: 'message', data: [] };
}

function applyField(draft: EventDraft, line: string): void {
  const colon = line.indexOf(':');
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
  if (name === 'id') draft.id = value;
  if (name === 'event') draft.event = value;
  if (name === 'data') draft.data.push(value);
}

/** @param onActivity called for every chunk, comments included: a sign that the server is alive */
export async function* readServerSentEvents(
  body: AsyncIterable<Uint8Array>,
  onActivity: () => void,
): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  let rest = '';
  let draft = emptyDraft(undefined);
  for await (const chunk of body) {
    onActivity();
    rest += decoder.decode(chunk, { stream: true });
    // A \r at the very end may be half of a \r
    // , so it waits for the next chunk.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line !== '') {
        applyField(draft, line);
        continue;
      }
      if (draft.data.length > 0) yield { ...draft, data: draft.data.join('\n') };
      draft = emptyDraft(draft.id);
    }
  }
}

interface FollowOptions {
  /** Ends the stream without an error. */
  readonly signal: AbortSignal;
  /** Called when contact is lost and when it is back. */
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

/** One connection. Skips everything but events of the run (a snapshot, types of a newer server). */
async function* readOnce(
  client: ApiClient,
  { runId, after }: { readonly runId: string; readonly after: number },
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const silence = new AbortController();
  const onSilence = () => silence.abort(new UnreachableError('the event stream went silent'));
  let timer = setTimeout(onSilence, silenceLimitMs);
  try {
    const { body } = await client.open(path`/v1/runs/${runId}/events`, {
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
      for await (const event of readOnce(client, { runId, after }, signal)) {
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

function isRecord(value: Json | undefined): value is Readonly<Record<string, Json>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function describeValue(name: string, value: Json): string | undefined {
  if (name === 'error' && isRecord(value)) return `${value.code}: ${value.message}`;
  const decided = name === 'as_decided' ? describeDecided(value) : null;
  if (decided !== null) return decided;
  if (name === 'cost_usd' && typeof value === 'number') return formatUsd(value);
  if (name === 'duration_ms' && typeof value === 'number') return formatDuration(value);
  if (typeof value === 'number' && name.endsWith('_usd')) return `${name.slice(0, -4)}=${formatUsd(value)}`;
  if (typeof value === 'number' && name.endsWith('_ms'))
    return `${name.slice(0, -3)}=${formatDuration(value)}`;
  if (typeof value === 'string' && /\s/.test(value)) return `${name}="${value}"`;
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? `${name}=${value}`
    : undefined;
}

function describeData(data: Json): string {
  return isRecord(data)
    ? Object.entries(data)
        .map(([name, value]) => describeValue(name, value))
        .filter((text) => text !== undefined)
        .join(' ')
    : '';
}

/** Filters a log: one step's lines, or messages of capabilities from a level on. */
export interface EventFilter {
  readonly step?: string | undefined;
  readonly level?: LogLevel | undefined;
}

export function isAsked(event: RunEvent, { step, level }: EventFilter): boolean {
  if (step !== undefined && event.step_id !== step) return false;
  if (level === undefined) return true;
  const logged = readStepLog(event);
  return logged !== null && isAtLeast(logged.level, level);
}

function describeLog({ level, message, endpoint }: StepLogData, style: Style): string {
  const paint = { debug: style.dim, info: style.cyan, warn: style.yellow, error: style.red }[level];
  return `${paint(level.padEnd(5))}  ${message.replace(/\s*\n\s*/g, ' ↵ ')}  ${style.dim(endpoint)}`;
}

function paintType(type: RunEvent['type'], style: Style): string {
  const padded = type.padEnd(14);
  if (type.endsWith('succeeded')) return style.green(padded);
  if (type.endsWith('failed')) return style.red(padded);
  return /retrying|cancel/.test(type) ? style.yellow(padded) : padded;
}

/**
 * One event as one line, for pipes, CI logs and `capstan events`: time in UTC, attempt after the step.
 * `10:57:27.120Z step.routed  trim #2  endpoint=http://…`
 */
export function formatEvent(event: RunEvent, style: Style): string {
  const time = `${new Date(event.at).toISOString().slice(11, 23)}Z`;
  const attempt = event.attempt === undefined ? '' : ` #${event.attempt}`;
  const item = event.item === undefined ? '' : `[${event.item}]`;
  const step = event.step_id === undefined ? [] : [`${event.step_id}${item}${attempt}`];
  const logged = readStepLog(event);
  const said = logged === null ? describeData(event.data) : describeLog(logged, style);
  return [style.dim(time), paintType(event.type, style), ...step, said].join('  ').trimEnd();
}
