/**
 * Lines that a capability logs while its call is open: which of them are kept, and how they read. A line of a wrong form
 * is passed over. Bounds hold for each call; a fifth of them is left to warnings and errors, so that a talkative call
 * still tells why it failed.
 */
import type { LogLevel, RunEvent, StepLogData } from '../../contracts/event.ts';

export interface CallLogLine {
  readonly level: LogLevel;
  readonly message: string;
}

const ranks: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

function isLogLevel(value: unknown): value is LogLevel {
  return typeof value === 'string' && Object.hasOwn(ranks, value);
}

export function isAtLeast(level: LogLevel, least: LogLevel): boolean {
  return ranks[level] >= ranks[least];
}

/** Null: it is no line that a capability logged. */
export function readStepLog({ type, data }: Pick<RunEvent, 'type' | 'data'>): StepLogData | null {
  if (type !== 'step.log' || !isRecord(data)) return null;
  const { level, message, endpoint } = data;
  return isLogLevel(level) ? { level, message: String(message), endpoint: String(endpoint) } : null;
}

/** Takes the lines of one call. */
export interface CallLog {
  /** @returns false when there is no room for it */
  note(line: CallLogLine): boolean;
  /** The instance says no more: what was noted need not wait for more lines. */
  flush(): void;
}

/** What is kept of one call. */
export const callLogBounds = {
  lines: 500,
  /** UTF-8, of messages. */
  bytes: 131_072,
  /** Lines at once. */
  burst: 100,
  perSecond: 10,
  /** Characters; the rest of a message is cut. */
  messageLength: 2_000,
} as const;

const shareOfGrave = 0.2;

type Fields = Readonly<Record<string, unknown>>;

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Whether a line of an answer logs something. An output may have a field `log` too, so the line has nothing else, or its
 * `log` reads like a line; an answer that says `ok` is none.
 */
export function isLogLine(value: unknown): value is Fields {
  if (!isRecord(value) || !Object.hasOwn(value, 'log') || Object.hasOwn(value, 'ok')) return false;
  const { log } = value;
  if (Object.keys(value).length === 1) return true;
  return isRecord(log) && (Object.hasOwn(log, 'level') || Object.hasOwn(log, 'message'));
}

/** What else it says is left out. Null: it has no known level or no message. */
export function readLogLine({ log }: Fields): CallLogLine | null {
  if (!isRecord(log)) return null;
  if (!isLogLevel(log.level) || typeof log.message !== 'string') return null;
  const message = cleanMessage(log.message);
  return message === '' ? null : { level: log.level, message };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences of terminals begin with one
const escapeSequence = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?)/g;
/** They turn what is read around. */
const directions = /[\u202a-\u202e\u2066-\u2069]/g;

/** Line breaks and tabs stay; nothing else controls whoever shows it. */
function cleanMessage(text: string): string {
  return text
    .slice(0, 2 * callLogBounds.messageLength)
    .replace(escapeSequence, '')
    .replace(directions, '')
    .replace(/\r\n?/g, '\n')
    .replace(/(?![\n\t])\p{Cc}/gu, ' ')
    .trim()
    .slice(0, callLogBounds.messageLength)
    .replace(/\p{Cs}/gu, '\uFFFD');
}

/** Whether there is room for one more line of a call, at a moment in milliseconds. */
export type LogAllowance = (line: CallLogLine, nowMs: number) => boolean;

export function createLogAllowance(): LogAllowance {
  const { lines, bytes, burst, perSecond } = callLogBounds;
  const left: Record<'lines' | 'bytes' | 'burst', number> = { lines, bytes, burst };
  let atMs = Number.NEGATIVE_INFINITY;
  return ({ level, message }, nowMs) => {
    const earned = (Math.max(0, nowMs - atMs) / 1_000) * perSecond;
    left.burst = Math.min(burst, left.burst + earned);
    atMs = nowMs;
    const size = new TextEncoder().encode(message).length;
    const share = level === 'warn' || level === 'error' ? 0 : shareOfGrave;
    const fits =
      left.lines - 1 >= lines * share &&
      left.bytes - size >= bytes * share &&
      left.burst - 1 >= burst * share;
    if (!fits) return false;
    Object.assign(left, { lines: left.lines - 1, bytes: left.bytes - size, burst: left.burst - 1 });
    return true;
  };
}

/** Lines that are not kept: beyond the bounds, or of a wrong form. */
export interface DroppedLines {
  readonly beyond: number;
  readonly wrong: number;
}

/** The closing line of a call. Null when nothing was dropped. */
export function describeDropped({ beyond, wrong }: DroppedLines): CallLogLine | null {
  const total = beyond + wrong;
  if (total === 0) return null;
  const form = wrong === 0 ? '' : `; ${wrong} had no known level or no message`;
  return { level: 'warn', message: `${total} ${total === 1 ? 'line was' : 'lines were'} dropped${form}` };
}
