/**
 * Bounded error texts, and their canonical text. The bounded text keeps both ends of a long one, so that readers of the
 * ends (the fingerprint, a skill's pattern) see the same as in the full text. Two failures with one canonical text are
 * the same failure, with any file, number or id. The canonical text is the last line whose own words, not its
 * quotations, look like an error. It is lower-cased, with URLs, paths, quoted text, values and tokens with digits
 * masked. The error class precedes it if the line does not name it. Errors are untrusted: only the ends of a long text
 * are read, and every pattern takes linear time. One segment after a slash ("/rate") names a field, not a file, and
 * stays.
 */

import { wordsOf } from '../call/outcome.ts';
import type { Failure } from '../contracts/primitives.ts';
import { isLongerThanBytes } from '../expression/language.ts';

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

/** The text for a history, at most 8 KiB. */
export function keepError(text: string): string {
  return isLongerThanBytes(text, keptBytes) ? endsOf(text, (keptBytes - gapBytes) >> 1).join(gap) : text;
}

/** The text of a failure in a history; for a refused input, the capability's own message. */
export function historyTextOf(failure: Failure): string {
  const isRefusal = failure.code === 'input_rejected' && failure.status === 422;
  return isRefusal ? wordsOf(failure) : failure.message;
}

const endBytes = 2_048;

const frame = /^(?:at |file "|\.\.\. )/i;
const errorWord =
  /\b(?:\w*(?:error|exception)|fail(?:ed|ure|s)?|fatal|invalid|cannot|can't|unable|not|no|missing|must|requires|expected|unexpected|unsupported|refused|denied|timed out)\b/i;
const errorClass = /\b[A-Z]\w*(?:Error|Exception)\b/g;

const url = /(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}:\/\/[^\s"'`<>]*/g;
const quoted = /"[^"]*"|`[^`]*`|“[^“”]*”|«[^«»]*»|‘[^‘’]*’|(?<![\p{L}\p{N}])'[^']*'(?![\p{L}\p{N}])/gu;
const assigned = /(?<=[\p{L}\p{N}_\]])=(?![=\s])[^\s,;&)\]}]+/gu;
const word = /[^\s,;()[\]{}<>=|]+/g;
const token = /(?<![\p{L}\p{N}_])[-+]?[\p{L}\p{N}_]+(?:[-.+][\p{L}\p{N}_]+)*/gu;
const manyNumbers = /<n>(?:[ ,;:]*<n>)+/g;

const fileExtensions = new Set(
  'aac avi csv flac gif gz html jpeg jpg js json log m4a md mjs mkv mov mp3 mp4 mpeg ogg opus pdf png py srt svg tar tif tiff ts txt vtt wav webm webp xml yaml yml zip'.split(
    ' ',
  ),
);

/** @returns the text that is hashed to a fingerprint; empty only for an empty error */
export function maskError(text: string): string {
  const lines = endsOf(text, endBytes)
    .join('\n')
    .split(/[\r\n]+/)
    .map(tidy)
    .filter((line) => line !== '' && !frame.test(line));
  const masked = lines.map((one) => maskLine(one.toLowerCase()));
  const told = masked.findLastIndex((one) => errorWord.test(one));
  const named = told >= 0 ? told : lines.findLastIndex((one) => errorWord.test(one));
  const line = masked.at(named) ?? '';
  const name = lines.flatMap((one) => one.match(errorClass) ?? []).at(-1);
  return name === undefined || line.includes(name.toLowerCase()) ? line : `${name}: ${line}`;
}

/** Removes terminal colours, control characters and double spaces. */
function tidy(line: string): string {
  return line
    .replace(/\p{Cc}\[[\d;]{0,16}m/gu, '')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}

function maskLine(line: string): string {
  return line
    .replace(url, '<url>')
    .replace(quoted, '<text>')
    .replace(assigned, '=<value>')
    .replace(word, maskWord)
    .replace(manyNumbers, '<n>');
}

function maskWord(text: string): string {
  let end = text.length;
  while (end > 0 && '.:!?'.includes(text.charAt(end - 1))) end -= 1;
  return isPath(text.slice(0, end)) ? `<path>${text.slice(end)}` : text.replace(token, maskToken);
}

function maskToken(text: string): string {
  return /\p{N}|^[a-f]{8,}$/u.test(text) ? '<n>' : text;
}

function isPath(text: string): boolean {
  if (text.includes('\\')) return true;
  const slashes = text.split('/').length - 1;
  const dot = text.lastIndexOf('.');
  if (slashes > 0)
    return slashes > 1 || dot >= 0 || (text.length > 1 && text.endsWith('/')) || text.startsWith('~');
  return dot > 0 && fileExtensions.has(text.slice(dot + 1));
}
