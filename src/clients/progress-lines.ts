/**
 * An answer to `/exec` that comes line by line (`application/x-ndjson`): lines of progress are told and forgotten, what
 * is left is the ordinary answer. As its head has been sent by then, a failure says its status in the answer itself.
 */
import { type CallProgress, isProgressLine, readProgress } from '../core/call/progress.ts';
import { isPlainObject } from '../core/json-type.ts';
import { largeTextBytes } from '../core/turns.ts';
import type { InstanceAnswer, InstanceAnswerHead, LineFilter } from './send-request.ts';

/** A longer line is no progress. */
const longestLine = 4_096;
/** Reading them takes 30 ms of a processor for each mebibyte: whoever tells more is cut off. */
const mostToldBytes = 64 * 1_048_576;
const newline = 10;
const nothing = Buffer.alloc(0);

export function isProgressive({ status, headers }: InstanceAnswerHead): boolean {
  return status === 200 && /^application\/x-ndjson\b/i.test(String(headers['content-type'] ?? ''));
}

/** Null when it is part of the answer. */
function parseLine(line: Buffer): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'));
    return isProgressLine(value) ? value : null;
  } catch {
    return null;
  }
}

/** @param mostBytes of lines of progress */
export function createProgressLines(
  tell: (progress: CallProgress) => void,
  mostBytes = mostToldBytes,
): LineFilter {
  let pending = nothing;
  let isLong = false;
  let toldBytes = 0;
  const endLine = (line: Buffer): Buffer => {
    const told = isLong || line.length > longestLine ? null : parseLine(line);
    isLong = false;
    if (told === null) return line;
    toldBytes += line.length;
    const progress = readProgress(told);
    if (progress !== null) tell(progress);
    return nothing;
  };
  return {
    take: (chunk) => {
      const kept: Buffer[] = [];
      let from = 0;
      for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, from)) {
        const line = Buffer.concat([pending, chunk.subarray(from, end + 1)]);
        pending = nothing;
        from = end + 1;
        kept.push(endLine(line));
      }
      pending = Buffer.concat([pending, chunk.subarray(from)]);
      if (isLong || pending.length > longestLine) {
        kept.push(pending);
        pending = nothing;
        isLong = true;
      }
      return toldBytes > mostBytes ? null : Buffer.concat(kept);
    },
    rest: () => endLine(pending),
  };
}

/** A longer answer is no refusal; its values are counted before it is parsed, which is not done here. */
const longestRefusal = largeTextBytes;

function readRefusal(body: Buffer | null): Readonly<Record<string, unknown>> {
  if (body === null || body.length >= longestRefusal) return {};
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isPlainObject(value as never) ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** What would have been answered without progress. */
export function toOrdinaryAnswer({ status, headers, body }: InstanceAnswer): InstanceAnswer {
  const { ok, status: said, retry_after_s, error_code } = readRefusal(body);
  const isRefusal = ok === false && typeof said === 'number' && said >= 400 && said <= 599;
  return {
    status: isRefusal ? Math.trunc(said) : status,
    headers: {
      ...headers,
      'content-type': 'application/json',
      ...(isRefusal && typeof retry_after_s === 'number' ? { 'retry-after': String(retry_after_s) } : {}),
      ...(isRefusal && typeof error_code === 'string' ? { 'x-error-code': error_code } : {}),
    },
    body,
  };
}
