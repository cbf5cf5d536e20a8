/**
 * The canonical text of an error: two failures with one canonical text are the same failure, whatever file,
 * number or id it happened to. It is the last line that looks like an error by its own words, not by what it quotes,
 * lower-cased, with URLs, paths, quoted text, values and tokens with digits masked, after the error class if the line
 * does not name it.
 *
 * Only the ends of a long text are read, and every pattern here takes linear time, for errors are untrusted. One
 * segment after a slash ("/rate") names a field, not a file, and stays.
 */
import { endsOf } from './error-text.ts';

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

/** Without terminal colours, control characters and double spaces. */
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
