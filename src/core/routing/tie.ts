/**
 * R1 and R3. Values within 1 % of the least are equal. Among equals the seed decides, by a number that depends on nothing but
 * the seed and the instance: leaving out any other instance does not change who is first.
 */
export function isTied(value: number, least: number): boolean {
  return value <= least * 1.01;
}

/** Ids end in their random part, so the end is enough. */
const hashedLength = 8;

/** 32 bits. */
export function tieHash(seed: number, id: string): number {
  let hash = seed ^ 0x811c9dc5;
  for (let at = Math.max(0, id.length - hashedLength); at < id.length; at++) {
    hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
