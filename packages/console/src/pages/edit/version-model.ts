/**
 * The next version of a text: versions are immutable, so changed content needs a new one. `1.0` → `1.1`, `2` → `3`,
 * `2026-11` → `2026-11-2`.
 */
export function nextVersion(version: string): string {
  const number = /^(.*?)(\d+)$/.exec(version);
  if (number === null || /-\d+$/.test(version)) return `${version}-2`;
  return `${number[1]}${Number(number[2]) + 1}`;
}

const line = /^version:.*$/m;

export function versionOf(text: string): string | null {
  const value = /^version:\s*["']?([^"'#\n]+?)["']?\s*(?:#.*)?$/m.exec(text)?.[1];
  return value ?? null;
}

export function withVersion(text: string, version: string): string {
  return line.test(text) ? text.replace(line, `version: "${version}"`) : `version: "${version}"\n${text}`;
}
