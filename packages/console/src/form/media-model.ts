/** Finds the fields that take a file, and names files for the project's media. */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { formatBytes } from '../shared/format.ts';

const scheme = 'media://';

function isReference(value: Json | undefined): boolean {
  return typeof value === 'string' && value.startsWith(scheme);
}

/** A text field whose pattern, default or example is a reference. */
export function takesMedia({ pattern, default: given, examples }: JsonObject): boolean {
  const wanted = typeof pattern === 'string' ? pattern.replaceAll('\\/', '/') : '';
  return (
    wanted.startsWith(`^${scheme}`) ||
    isReference(given) ||
    (Array.isArray(examples) && examples.some(isReference))
  );
}

const longestName = 100;

/**
 * A segment of a media path that resembles the file's name and keeps its ending: `my clip (1).mp4` → `my-clip-1-.mp4`.
 */
export function toMediaName(name: string): string {
  const ending = /\.[A-Za-z0-9]{1,10}$/.exec(name)?.[0] ?? '';
  const stem = name
    .slice(0, name.length - ending.length)
    .normalize('NFKD')
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[.-]+/, '')
    .slice(0, longestName);
  return `${stem === '' ? 'file' : stem}${ending}`;
}

/** The reason not to try an upload. @param limit bytes; null = unknown, so the server decides */
export function refuseFile({ name, size }: Pick<File, 'name' | 'size'>, limit: number | null): string | null {
  if (limit === null || size <= limit) return null;
  return `${name} has ${formatBytes(size)}; at most ${formatBytes(limit)} are allowed`;
}
