/**
 * Log lines that a capability sends while its call is open: which are kept, and in what form. A malformed line is
 * ignored. The bounds apply to each call. A fifth of them is reserved for warnings and errors, so that a verbose call
 * still shows why it failed.
 */
import type { LogLevel, RunEvent, StepLogData } from '../contracts/event.ts';

export interface CallLogLine {
  readonly level: LogLevel;
  readonly message: string;
  /** The message is a piece of the answer's text. */
  readonly isDelta?: boolean;
}

const ranks: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

function isLogLevel(value: unknown): value is LogLevel {
  return typeof value === 'string' && Object.hasOwn(ranks, value);
}

export function isAtLeast(level: LogLevel, least: LogLevel): boolean {
  return ranks[level] >= ranks[least];
}

/** Null when the event is not a capability's log line. */
export function readStepLog({ type, data }: Pick<RunEvent, 'type' | 'data'>): StepLogData | null {
  if (type !== 'step.log' || !isRecord(data)) return null;
  const { level, message, endpoint } = data;
  return isLogLevel(level) ? { level, message: String(message), endpoint: String(endpoint) } : null;
}

/** Collects the log lines of one call. */
export interface CallLog {
  /** @returns false when the log is full */
  note(line: CallLogLine): boolean;
  /** No more lines follow: stores noted lines without waiting. */
  flush(): void;
}

/** Limits of what is kept of one call. */
export const callLogBounds = {
  lines: 500,
  /** UTF-8 bytes of all messages. */
  bytes: 131_072,
  /** Lines in one burst. */
  burst: 100,
  perSecond: 10,
  /** Characters; the rest of a message is cut off. */
  messageLength: 2_000,
} as const;

const shareOfGrave = 0.2;

type Fields = Readonly<Record<string, unknown>>;

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Whether a line of an answer is a log line. An output may have a field `log` too, so the line must have no other
 * field, or its `log` must have a level or a message. A line with `ok` is never a log line.
 */
export function isLogLine(value: unknown): value is Fields {
  if (!isRecord(value) || !Object.hasOwn(value, 'log') || Object.hasOwn(value, 'ok')) return false;
  const { log } = value;
  if (Object.keys(value).length === 1) return true;
  return isRecord(log) && (Object.hasOwn(log, 'level') || Object.hasOwn(log, 'message'));
}

/** Ignores other fields. Null when the level is unknown or the message is missing. */
export function readLogLine({ log }: Fields): CallLogLine | null {
  if (!isRecord(log)) return null;
  if (!isLogLevel(log.level) || typeof log.message !== 'string') return null;
  const message = cleanMessage(log.message);
  return message === '' ? null : { level: log.level, message };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences of terminals begin with one
const escapeSequence = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?)/g;
/** Characters that change the direction of the surrounding text. */
const directions = /[\u202a-\u202e\u2066-\u2069]/g;

/** Keeps line breaks and tabs; removes all other control characters. */
function withoutControls(text: string): string {
  return text
    .replace(escapeSequence, '')
    .replace(directions, '')
    .replace(/\r\n?/g, '\n')
    .replace(/(?![\n\t])\p{Cc}/gu, ' ');
}

function withoutHalves(text: string): string {
  return text.replace(/\p{Cs}/gu, '\uFFFD');
}

function cleanMessage(text: string): string {
  const { messageLength } = callLogBounds;
  const plain = withoutControls(text.slice(0, 2 * messageLength));
  return withoutHalves(plain.trim().slice(0, messageLength));
}

/** A line with a piece of an answer's text: its spaces stay, so that the pieces can be joined. */
export function toDeltaLine(text: string): CallLogLine {
  return { level: 'debug', message: withoutHalves(withoutControls(text)), isDelta: true };
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

/** Lines that were not kept. */
export interface DroppedLines {
  readonly beyond: number;
  readonly wrong: number;
}

/** The last log line of a call; null when nothing was dropped. */
export function describeDropped({ beyond, wrong }: DroppedLines): CallLogLine | null {
  const total = beyond + wrong;
  if (total === 0) return null;
  const form = wrong === 0 ? '' : `; ${wrong} had no known level or no message`;
  return { level: 'warn', message: `${total} ${total === 1 ? 'line was' : 'lines were'} dropped${form}` };
}
