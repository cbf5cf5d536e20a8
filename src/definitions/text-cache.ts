/**
 * What was made of long texts, kept as long as the texts together are not too long: what is made of one takes some times
 * its length in memory, so a number of entries says nothing about it. What is used least recently goes first.
 */
import { LRUCache } from 'lru-cache';

/** In characters: four of the longest definitions, or thousands of usual ones. */
const mostCharacters = 32 * 1_048_576;
/** Of an entry whose text is short. */
const shortest = 1_000;

export interface TextCache<Value> {
  get(name: string): Value | undefined;
  /** @param text what the value was made of; written as JSON once, to know its length */
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
