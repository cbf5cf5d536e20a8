/**
 * The lines of an instance while it works, in an answer that comes line by line: lines of progress, lines for the log
 * and parts of the result are reported and forgotten, all else stays and is the answer. An object of an unknown kind is
 * skipped if another object follows, because the last line is the answer. A line that cannot be used has no effect. An
 * instance that sends more than the bound is cut off; of the log no more is kept than `core/call/log-lines.ts` allows,
 * and one closing line counts the dropped lines.
 */

import {
  type CallLog,
  createLogAllowance,
  describeDropped,
  isLogLine,
  readLogLine,
} from '@capstan/core/call/log-lines';
import { type CallProgress, isDeltaLine, isProgressLine, readProgress } from '@capstan/core/call/outcome';
import type { Json } from '@capstan/core/contracts/primitives';
import { isPlainObject } from '@capstan/core/json/values';
import type { Redactor } from '@capstan/core/secrets/redaction';
import type { LineFilter } from './send-request.ts';

export interface LineListener {
  readonly onProgress?: ((progress: CallProgress) => void) | undefined;
  /** Default: lines are read and left out. */
  readonly log?: CallLog | undefined;
  /** Takes secrets out of each line. Default: there is none. */
  readonly redactor?: Redactor | undefined;
  /** Receives parts of the result. Default: the instance was not asked for them, so no line is one. */
  readonly onDelta?: ((delta: Json) => void) | undefined;
}

export interface ToldLines extends LineFilter {
  /** The call has ended in any way: reports the dropped lines. */
  end(): void;
}

/** A longer line is no progress. */
const longestLine = 4_096;
/** A longer line that begins like one of the log, or like a part of the result, is dropped. */
const longestToldLine = 16_384;
/** Reading them takes 30 ms of a processor for each mebibyte: an instance that sends more is cut off. */
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

function kindOfAnswer(value: unknown): LineKind {
  if (!isPlainObject(value)) return 'other';
  return Object.hasOwn(value, 'ok') ? 'answer' : 'object';
}

interface LineReader {
  /** Reports the content of a line. */
  read(line: Buffer): LineKind;
  drop(): void;
  end(): void;
}

function createLineReader(
  { onProgress, log, onDelta, redactor }: LineListener,
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
      const progress = isProgressLine(value) ? readProgress(value) : undefined;
      if (progress) onProgress?.(progress);
      return logs || progress !== undefined ? 'told' : kindOfAnswer(value);
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

interface AnswerLines {
  /** What is kept of a line of this kind, and of one of an unknown kind before it. */
  keep(kind: LineKind, line: Buffer): Buffer;
  /** The same of a part of a line that is too long to be read. */
  keepLong(part: Buffer): Buffer;
  /** @param last what is kept of the last line */
  end(last: Buffer): Buffer;
}

/** Holds an object of no known kind back: it is the answer, unless another object follows. */
function createAnswerLines(skip: (line: Buffer) => Buffer): AnswerLines {
  let unknown: Buffer = nothing;
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
  return {
    keep,
    keepLong: (part) => {
      if (unknown.length === 0) return part;
      return keep(/^\s*\{/.test(part.toString('latin1', 0, 64)) ? 'answer' : 'other', part);
    },
    end: (last) => (unknown.length === 0 ? last : Buffer.concat([last, unknown])),
  };
}

/** @param mostBytes of lines with a report */
export function createToldLines(
  listener: LineListener,
  mostBytes = mostToldBytes,
  now = (): number => performance.now(),
): ToldLines {
  const reader = createLineReader(listener, now);
  let pending: Buffer = nothing;
  const tellsDeltas = listener.onDelta !== undefined;
  let long: LongLine | null = null;
  let toldBytes = 0;
  const answer = createAnswerLines((line) => {
    toldBytes += line.length;
    return nothing;
  });
  const endLine = (line: Buffer): Buffer => {
    long ??= judgeLength(line, tellsDeltas);
    const length = long;
    long = null;
    if (length === 'answer') return answer.keepLong(line);
    if (length === 'log') reader.drop();
    return answer.keep(length === null ? reader.read(line) : 'told', line);
  };
  const holdUnended = (part: Buffer): Buffer => {
    long ??= judgeLength(part, tellsDeltas);
    pending = long === null ? part : nothing;
    if (long === 'log' || long === 'delta') toldBytes += part.length;
    return long === 'answer' ? answer.keepLong(part) : nothing;
  };
  return {
    take: (chunk) => {
      const { lines, rest } = cutLines(pending.length === 0 ? chunk : Buffer.concat([pending, chunk]));
      const kept = lines.map(endLine).filter((line) => line.length > 0);
      kept.push(holdUnended(rest));
      if (toldBytes > mostBytes) return null;
      return kept.length === 1 ? (kept[0] as Buffer) : Buffer.concat(kept);
    },
    rest: () => answer.end(endLine(pending)),
    end: reader.end,
  };
}
