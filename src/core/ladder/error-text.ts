/**
 * Bounded error texts. The kept text holds both ends of a long one, so that whatever reads only the ends (the
 * fingerprint, a skill's pattern) sees the same in it as in the full text.
 */
import type { Failure } from '../../contracts/primitives.ts';
import { wordsOf } from '../call/http-failure.ts';
import { isLongerThanBytes } from '../expression/limits.ts';

/** Bytes (UTF-8) of one error in a history. */
const keptBytes = 8_192;
const gap = '\n[…]\n';
const gapBytes = 7;

function widthOf(codePoint: number): number {
  return codePoint < 0x80 ? 1 : codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4;
}

function isPairAt(text: string, at: number): boolean {
  return (text.codePointAt(at) as number) > 0xffff;
}

function headEnd(text: string, limit: number): number {
  let end = 0;
  for (let left = limit; end < text.length; end += isPairAt(text, end) ? 2 : 1) {
    left -= widthOf(text.codePointAt(end) as number);
    if (left < 0) break;
  }
  return end;
}

function tailStart(text: string, limit: number): number {
  let start = text.length;
  let left = limit;
  while (start > 0) {
    const at = start > 1 && isPairAt(text, start - 2) ? start - 2 : start - 1;
    left -= widthOf(text.codePointAt(at) as number);
    if (left < 0) break;
    start = at;
  }
  return start;
}

/** The first and the last `limit` bytes; the whole text when it is no longer than both. */
export function endsOf(text: string, limit: number): readonly string[] {
  return isLongerThanBytes(text, 2 * limit)
    ? [text.slice(0, headEnd(text, limit)), text.slice(tailStart(text, limit))]
    : [text];
}

/** The text as a history keeps it, at most 8 KiB. */
export function keepError(text: string): string {
  return isLongerThanBytes(text, keptBytes) ? endsOf(text, (keptBytes - gapBytes) >> 1).join(gap) : text;
}

/** The text that a history has of a failure: of an input that was refused as such, what the capability says. */
export function historyTextOf(failure: Failure): string {
  const isRefusal = failure.code === 'input_rejected' && failure.status === 422;
  return isRefusal ? wordsOf(failure) : failure.message;
}
