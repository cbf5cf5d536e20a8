/**
 * Decides when two calls are equal, and carries the result of one over to the other. C1: a different project,
 * capability, version, spec, set of tags, input value or byte of a named file gives a different key. C2: file names do
 * not count, for files that are read or written. The extension of a path to write to does count, because capabilities
 * choose a format by it. C3: paths that are written coincide in one input exactly as they do in the other. An input has
 * a key only if it names every file as a whole value: the bytes behind a path inside a longer text are unknown. In a
 * reused result, files that the first call wrote appear at the paths that the second call asked for, and the output
 * names those paths. Other files that it names stay where they are.
 */
import { major, valid } from 'semver';
import { parseMediaReference } from './contracts/media.ts';
import type { CachePolicy } from './contracts/pipeline.ts';
import type { Json, JsonObject } from './contracts/primitives.ts';
import { canonicalJson, extendPointer, isPlainObject } from './json/values.ts';
import { mentionsMedia, outputPathKey } from './media.ts';

/** The boundary within which equal calls share a result. */
export type CacheScope =
  | readonly ['project']
  | readonly ['pipeline', pipeline: string]
  | readonly ['run', runId: string];

export function scopeOf(
  { scope = 'project' }: Pick<CachePolicy, 'scope'>,
  run: { readonly pipeline: string; readonly run_id: string },
): CacheScope {
  switch (scope) {
    case 'project':
      return ['project'];
    case 'pipeline':
      return ['pipeline', run.pipeline];
    case 'run':
      return ['run', run.run_id];
  }
}

export interface KeyedCall {
  readonly projectId: string;
  readonly scope: CacheScope;
  readonly capability: string;
  /** Tags that an instance must have, in any order. */
  readonly tags: readonly string[];
  readonly input: JsonObject;
  /** The places and versions of its secrets. */
  readonly secrets?: readonly string[] | undefined;
  readonly places: MediaPlaces;
  /** SHA-256 of each input file, by its reference. */
  readonly digests: ReadonlyMap<string, string>;
}

/** The version and spec of an instance that may answer the call. */
export interface KeyedSpec {
  readonly version: string;
  readonly digest: string;
}

/** The text that is hashed to the key. */
export function cacheKeyText(call: KeyedCall, spec: KeyedSpec): string {
  const { projectId, scope, capability, tags, input, secrets, places, digests } = call;
  const files = Object.entries(places.sources).map(([pointer, reference]) => {
    const digest = digests.get(reference);
    if (digest === undefined) throw new RangeError(`no digest of ${reference}`);
    return [pointer, digest];
  });
  return canonicalJson({
    project: projectId,
    scope,
    capability,
    tags: [...new Set(tags)].sort(),
    major: majorOf(spec.version),
    spec: spec.digest,
    input: withoutFiles(input, '', places),
    files: Object.fromEntries(files),
    targets: describeTargets(places),
    ...(secrets === undefined ? {} : { secrets: [...secrets] }),
  });
}

function majorOf(version: string): string {
  return valid(version) === null ? version : String(major(version));
}

/** Replaces file references by null; an author's own null has no file at its pointer. */
function withoutFiles(value: Json, pointer: string, places: MediaPlaces): Json {
  if (Object.hasOwn(places.sources, pointer) || Object.hasOwn(places.targets, pointer)) return null;
  if (Array.isArray(value)) {
    return value.map((child, index) => withoutFiles(child as Json, extendPointer(pointer, index), places));
  }
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) => [
      key,
      withoutFiles(child as Json, extendPointer(pointer, key), places),
    ]),
  );
}

/** For each path to write to: its extension, and the first pointer in the input that names the same path. */
function describeTargets({ sources, targets }: MediaPlaces): Json {
  const first = new Map<string, string>();
  for (const [pointer, reference] of [...sorted(targets), ...sorted(sources)]) {
    if (!first.has(reference)) first.set(reference, pointer);
  }
  const read = new Set(Object.values(sources));
  return Object.fromEntries(
    Object.entries(targets).map(([pointer, reference]) => [
      pointer,
      [extensionOf(reference), first.get(reference) ?? '', read.has(reference)],
    ]),
  );
}

function sorted(places: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(places).sort(([a], [b]) => (a < b ? -1 : 1));
}

function extensionOf(reference: string): string {
  return /\.[A-Za-z0-9_-]*$/.exec(reference)?.[0] ?? '';
}

/** References by JSON Pointer into the input. */
export interface MediaPlaces {
  /** Files that the call reads. */
  readonly sources: Readonly<Record<string, string>>;
  /** Paths that the call writes: all values of `output_path`. */
  readonly targets: Readonly<Record<string, string>>;
}

/** Whether a text contains a file reference without being one as a whole. */
function hidesMedia(text: string): boolean {
  return mentionsMedia(text) && parseMediaReference(text) === null;
}

/** Null when a file is not named as a whole value, or when something other than a file is to be written. */
export function findMediaPlaces(input: JsonObject): MediaPlaces | null {
  const places = { sources: {}, targets: {} };
  return collectPlaces(input, { pointer: '', isTarget: false }, places) ? places : null;
}

interface Standing {
  readonly pointer: string;
  /** At or below `output_path`. */
  readonly isTarget: boolean;
}

/** @returns false when the places cannot be determined */
function collectPlaces(
  value: Json,
  { pointer, isTarget }: Standing,
  places: { readonly [Kind in keyof MediaPlaces]: Record<string, string> },
): boolean {
  if (typeof value === 'string') {
    if (parseMediaReference(value) === null) return !isTarget && !mentionsMedia(value);
    places[isTarget ? 'targets' : 'sources'][pointer] = value;
    return true;
  }
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, child]) => {
    const below = {
      pointer: extendPointer(pointer, key),
      isTarget: isTarget || (!Array.isArray(value) && key === outputPathKey),
    };
    return !mentionsMedia(key) && collectPlaces(child, below, places);
  });
}

/** A finished call and its result. */
export interface KeptResult {
  readonly output: Json;
  readonly places: MediaPlaces;
  /**
   * SHA-256 by reference of the files that it wrote or that its output names; files that were only read are not
   * included.
   */
  readonly files: Readonly<Record<string, string>>;
}

interface FileState {
  readonly reference: string;
  readonly sha256: string;
}

interface Relocation {
  readonly output: Json;
  readonly copies: readonly { readonly from: FileState; readonly to: string }[];
  /** States of files that must be unchanged for the result to be reused. */
  readonly kept: readonly FileState[];
}

/** Every file that an output names; null when one is not named as a whole value. */
export function listOutputFiles(output: Json): ReadonlySet<string> | null {
  const found = new Set<string>();
  return collectFiles(output, found) ? found : null;
}

function collectFiles(value: Json, found: Set<string>): boolean {
  if (typeof value === 'string') {
    if (parseMediaReference(value) !== null) found.add(value);
    return !hidesMedia(value);
  }
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, child]) => !mentionsMedia(key) && collectFiles(child, found));
}

export function relocate({ output, places, files }: KeptResult, asked: MediaPlaces): Relocation {
  const moved = new Map<string, string>();
  for (const kind of ['sources', 'targets'] as const) {
    for (const [pointer, reference] of Object.entries(places[kind])) {
      const wanted = asked[kind][pointer];
      if (wanted !== undefined) moved.set(reference, wanted);
    }
  }
  const targets = Object.values(places.targets);
  const placeOf = (reference: string): string => {
    const exact = moved.get(reference);
    if (exact !== undefined) return exact;
    const folder = targets.find((target) => reference.startsWith(`${target}/`));
    return folder === undefined
      ? reference
      : `${moved.get(folder) ?? folder}${reference.slice(folder.length)}`;
  };
  const states = Object.entries(files).map(([reference, sha256]) => ({ reference, sha256 }));
  return {
    output: rename(output, placeOf),
    copies: states.flatMap((from) => {
      const to = placeOf(from.reference);
      return to === from.reference ? [] : [{ from, to }];
    }),
    kept: states.filter(({ reference }) => placeOf(reference) === reference),
  };
}

function rename(value: Json, placeOf: (reference: string) => string): Json {
  if (typeof value === 'string') return parseMediaReference(value) === null ? value : placeOf(value);
  if (Array.isArray(value)) return value.map((child) => rename(child as Json, placeOf));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) => [key, rename(child as Json, placeOf)]),
  );
}
