/**
 * The values that no correction may change, from any source: output paths, fetched URLs, contacted hosts, and secrets. A failing
 * input may be repaired, but not redirected.
 */
import type { Json } from '../contracts/primitives.ts';
import { isEqual } from '../expression/compare.ts';
import { extendPointer } from '../json/values.ts';
import { outputPathKey } from '../media.ts';

/**
 * Network targets in a text: URLs of any scheme, and hosts without one. Doubtful cases count as hosts. A plain name
 * with dots alone does not, because file names look the same.
 */
const url = /^\s*(?:[a-z][a-z0-9+.-]*:\/\/|(?:https?|wss?|ftp|file|data|blob|javascript|mailto):|[\\/]{2})/i;

/** Browsers read `\` like `/`, and accept no slash or one in place of two after a well-known scheme. */
const authority = /(?:(?:https?|wss?|ftp):[\\/]*|(?<![\\/])[\\/]{2,})([^\s\\/?#"'<>]+)/gi;
const address = /(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])/g;
const withPort =
  /(?<![\w.-])(?:\[[0-9a-f:.]+\]|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z][a-z0-9-]*|localhost):\d{1,5}(?!\d)/gi;

/** `[secret NAME]`, in place of a value. */
const namesSecret = /\[secret [a-z][a-z0-9_-]*\]/;

/** Includes `media://` references. */
function isUrl(text: string): boolean {
  return url.test(text);
}

/** Hosts with their ports, in lower case, without user names. */
function findHosts(text: string): string[] {
  const authorities = [...text.matchAll(authority)].map(([, found = '']) =>
    found.slice(found.lastIndexOf('@') + 1),
  );
  const others = [...text.matchAll(address), ...text.matchAll(withPort)].map(([found]) => found);
  return [...authorities, ...others].map((host) => host.toLowerCase());
}

interface ProtectedChange {
  /** JSON Pointer of the first protected value that changed. */
  readonly pointer: string;
  readonly reason: string;
}

/** A scalar, or a list or object without content. */
interface Leaf {
  readonly value: Json;
  readonly keys: readonly string[];
}

/** @returns the first change that is not allowed, or null */
export function findProtectedChange(original: Json, corrected: Json): ProtectedChange | null {
  const before = readLeaves(original);
  const after = readLeaves(corrected);
  const hosts = new Set([...before.values()].flatMap(hostsOf));
  for (const pointer of new Set([...before.keys(), ...after.keys()])) {
    const reason = explainChange(before.get(pointer), after.get(pointer), hosts);
    if (reason !== null) return { pointer, reason };
  }
  return null;
}

function readLeaves(document: Json): ReadonlyMap<string, Leaf> {
  const leaves = new Map<string, Leaf>();
  const visit = (value: Json, pointer: string, keys: readonly string[]): void => {
    const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
    if (entries.length === 0) leaves.set(pointer, { value, keys });
    for (const [key, child] of entries) visit(child, extendPointer(pointer, key), [...keys, key]);
  };
  visit(document, '', []);
  return leaves;
}

function hostsOf({ value, keys }: Leaf): string[] {
  return [...keys, ...(typeof value === 'string' ? [value] : [])].flatMap(findHosts);
}

function explainChange(
  before: Leaf | undefined,
  after: Leaf | undefined,
  hosts: ReadonlySet<string>,
): string | null {
  if (before !== undefined && after !== undefined && isEqual(before.value, after.value)) return null;
  const sides = [before, after].filter((leaf) => leaf !== undefined);
  if (sides.some(({ keys }) => keys.includes(outputPathKey)))
    return 'is an output_path, which stays as it is';
  if (sides.some(({ value }) => typeof value === 'string' && isUrl(value))) {
    return 'is a URL or media reference, which stays as it is';
  }
  if (sides.some(({ value }) => typeof value === 'string' && namesSecret.test(value)))
    return 'names a secret, which stays where it is';
  const stranger = after === undefined ? undefined : hostsOf(after).find((host) => !hosts.has(host));
  return stranger === undefined ? null : `names the host ${stranger.slice(0, 100)}, which the input did not`;
}
