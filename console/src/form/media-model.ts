/** Which fields take a file, and what a file is called in the project's media. */
import type { Json, JsonObject } from '../../../src/contracts/primitives.ts';
import { formatBytes } from '../shared/format.ts';

const scheme = 'media://';

function isReference(value: Json | undefined): boolean {
  return typeof value === 'string' && value.startsWith(scheme);
}

/** A text whose pattern, default or example is a reference. */
export function takesMedia({ pattern, default: given, examples }: JsonObject): boolean {
  const wanted = typeof pattern === 'string' ? pattern.replaceAll('\\/', '/') : '';
  return (
    wanted.startsWith(`^${scheme}`) ||
    isReference(given) ||
    (Array.isArray(examples) && examples.some(isReference))
  );
}

const longestName = 100;

/** One segment of a media path that still tells the file, its ending kept: `my clip (1).mp4` → `my-clip-1-.mp4`. */
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

/** Why it is not even tried. @param limit bytes; null = not known yet, so the server will say */
export function refuseFile({ name, size }: Pick<File, 'name' | 'size'>, limit: number | null): string | null {
  if (limit === null || size <= limit) return null;
  return `${name} has ${formatBytes(size)}; at most ${formatBytes(limit)} are allowed`;
}
