/** Names that reach an object's prototype in JavaScript: refused as keys, ids and path segments. */
const forbiddenNames: ReadonlySet<string> = new Set(['__proto__', 'prototype', 'constructor']);

export function isForbiddenName(name: string): boolean {
  return forbiddenNames.has(name);
}
