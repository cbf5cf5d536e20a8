/**
 * Caches results for long texts, within a limit on the total length of the texts. A result takes a multiple of its
 * text's length in memory, so a number of entries is not a useful limit. The least recently used goes first.
 */
import { LRUCache } from 'lru-cache';

/** In characters: four of the longest definitions, or thousands of usual ones. */
const mostCharacters = 32 * 1_048_576;
/** The minimum size that an entry counts for. */
const shortest = 1_000;

export interface TextCache<Value> {
  get(name: string): Value | undefined;
  /** @param text the source of the value; written as JSON once, to measure its length */
  set(name: string, value: Value, text: unknown): void;
}

export function createTextCache<Value extends object>(most = mostCharacters): TextCache<Value> {
  const kept = new LRUCache<string, Value>({ maxSize: most });
  return {
    get: (name) => kept.get(name),
    set: (name, value, text) =>
      void kept.set(name, value, { size: shortest + (JSON.stringify(text) ?? '').length }),
  };
}
