/**
 * What an instance tells while it works, in an answer that comes line by line: lines of progress, lines for the log and
 * parts of the result are told and forgotten, all else stays and is the answer. An object of an unknown kind is skipped
 * if another object follows, because the last line is the answer. A line that cannot be used harms nobody. Whoever tells
 * more than anybody reads is cut off; of the log no more is kept than `core/call/log-lines.ts` allows, and one closing
 * line says how many lines were dropped.
 */
import type { Json } from '../contracts/primitives.ts';
import {
  type CallLog,
  createLogAllowance,
  describeDropped,
  isLogLine,
  readLogLine,
} from '../core/call/log-lines.ts';
import { type CallProgress, isDeltaLine, isProgressLine, readProgress } from '../core/call/outcome.ts';
import { isPlainObject } from '../core/json/values.ts';
import type { Redactor } from '../core/secrets/redaction.ts';
import type { LineFilter } from './send-request.ts';

export interface ToldListener {
  readonly onProgress?: ((progress: CallProgress) => void) | undefined;
  /** Default: lines are read and left out. */
  readonly log?: CallLog | undefined;
  /** Takes secrets out of each line. Default: there is none. */
  readonly redactor?: Redactor | undefined;
  /** Receives parts of the result. Default: the instance was not asked for them, so no line is one. */
  readonly onDelta?: ((delta: Json) => void) | undefined;
}

export interface ToldLines extends LineFilter {
  /** The call has ended, however it did: says what was dropped. */
  end(): void;
}

/** A longer line is no progress. */
const longestLine = 4_096;
/** A longer line that begins like one of the log, or like a part of the result, is dropped. */
const longestToldLine = 16_384;
/** Reading them takes 30 ms of a processor for each mebibyte: whoever tells more is cut off. */
const mostToldBytes = 64 * 1_048_576;
const newline = 10;
const nothing = Buffer.alloc(0);

/** What a line is by its beginning, once it has grown too long to be held; null: it may still grow. */
type LongLine = 'log' | 'delta' | 'answer';

function judgeLength(line: Buffer, tellsDeltas: boolean): LongLine | null {
  if (line.length <= longestLine) return null;
  const beginning = line.toString('latin1', 0, 64);
  const [, log, delta] = /^\s*\{\s*"(?:(log)"\s*:\s*\{|(delta)"\s*:)/.exec(beginning) ?? [];
  if (log === undefined && (delta === undefined || !tellsDeltas)) return 'answer';
  if (line.length <= longestToldLine) return null;
  return log === undefined ? 'delta' : 'log';
}

function parseLine(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** `object`: without `ok`, so it is the answer only if it is the last. `answer`: an object with `ok`. */
type LineKind = 'told' | 'object' | 'answer' | 'other';

interface LineReader {
  /** Tells what a line says. */
  read(line: Buffer): LineKind;
  drop(): void;
  end(): void;
}

function createLineReader(
  { onProgress, log, onDelta, redactor }: ToldListener,
  now: () => number,
): LineReader {
  const isAllowed = createLogAllowance();
  const dropped = { beyond: 0, wrong: 0 };
  const noteLine = (value: Readonly<Record<string, unknown>>): void => {
    if (log === undefined) return;
    const line = readLogLine(value);
    if (line === null) dropped.wrong += 1;
    else if (!isAllowed(line, now()) || !log.note(line)) dropped.beyond += 1;
  };
  return {
    read: (line) => {
      const told = parseLine(line);
      const value = redactor === undefined || told === undefined ? told : redactor.json(told as Json);
      if (onDelta !== undefined && isDeltaLine(value)) {
        onDelta(value.delta);
        return 'told';
      }
      const logs = isLogLine(value);
      if (logs) noteLine(value);
      if (isProgressLine(value)) {
        const progress = readProgress(value);
        if (progress !== null) onProgress?.(progress);
        return 'told';
      }
      if (logs) return 'told';
      if (!isPlainObject(value)) return 'other';
      return Object.hasOwn(value, 'ok') ? 'answer' : 'object';
    },
    drop: () => {
      dropped.beyond += 1;
    },
    end: () => {
      const closing = describeDropped(dropped);
      if (closing !== null) log?.note(closing);
      Object.assign(dropped, { beyond: 0, wrong: 0 });
      log?.flush();
    },
  };
}

/** Lines with their ends, and what has come of the next one. */
function cutLines(bytes: Buffer): { readonly lines: readonly Buffer[]; readonly rest: Buffer } {
  const lines: Buffer[] = [];
  let from = 0;
  for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, from)) {
    const isAll = from === 0 && end === bytes.length - 1; // as a rule, and a part of a Buffer is a new one
    lines.push(isAll ? bytes : bytes.subarray(from, end + 1));
    from = end + 1;
  }
  return { lines, rest: from === bytes.length ? nothing : bytes.subarray(from) };
}

/** @param mostBytes of lines that tell something */
export function createToldLines(
  listener: ToldListener,
  mostBytes = mostToldBytes,
  now = (): number => performance.now(),
): ToldLines {
  const reader = createLineReader(listener, now);
  let pending: Buffer = nothing;
  const tellsDeltas = listener.onDelta !== undefined;
  let long: LongLine | null = null;
  let toldBytes = 0;
  /** An object of no known kind: the answer, unless another object follows. */
  let unknown: Buffer = nothing;
  const skip = (line: Buffer): Buffer => {
    toldBytes += line.length;
    return nothing;
  };
  /** What is kept of a line of this kind, and of one of an unknown kind before it. */
  const keep = (kind: LineKind, line: Buffer): Buffer => {
    const before = unknown;
    unknown = nothing;
    if (kind === 'other') {
      if (before.length === 0) return line;
      if (line.toString('latin1').trim() !== '') return Buffer.concat([before, line]);
      unknown = before; // a blank line follows
      return nothing;
    }
    skip(before);
    if (kind === 'object') unknown = line;
    if (kind === 'told') return skip(line);
    return kind === 'answer' ? line : nothing;
  };
  /** A part of a line that is too long to be read. */
  const keepLong = (part: Buffer): Buffer => {
    if (unknown.length === 0) return part;
    const isObject = /^\s*\{/.test(part.toString('latin1', 0, 64));
    return keep(isObject ? 'answer' : 'other', part);
  };
  const endLine = (line: Buffer): Buffer => {
    long ??= judgeLength(line, tellsDeltas);
    const isLong = long === 'answer';
    const kind = long === null ? reader.read(line) : long === 'answer' ? 'other' : 'told';
    if (long === 'log') reader.drop();
    long = null;
    return isLong ? keepLong(line) : keep(kind, line);
  };
  /** What has come of a line that goes on. */
  const holdLine = (part: Buffer): Buffer => {
    long ??= judgeLength(part, tellsDeltas);
    pending = long === null ? part : nothing;
    if (long === 'log' || long === 'delta') toldBytes += part.length;
    return long === 'answer' ? keepLong(part) : nothing;
  };
  return {
    take: (chunk) => {
      const { lines, rest } = cutLines(pending.length === 0 ? chunk : Buffer.concat([pending, chunk]));
      const kept: Buffer[] = [];
      for (const line of lines) {
        const left = endLine(line);
        if (left.length > 0) kept.push(left);
      }
      kept.push(holdLine(rest));
      if (toldBytes > mostBytes) return null;
      return kept.length === 1 ? (kept[0] as Buffer) : Buffer.concat(kept);
    },
    rest: () => {
      const last = endLine(pending);
      return unknown.length === 0 ? last : Buffer.concat([last, unknown]);
    },
    end: reader.end,
  };
}
