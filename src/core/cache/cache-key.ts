/**
 * When two calls are the same call. C1: another project, capability, version, spec, set of tags, value of the input, or
 * byte of a file that it names makes another key. C2: names of files make none, neither of those that are read nor of those that are
 * written; of a path to write to its extension counts, because capabilities choose a format by it. C3: paths that are the
 * same in one input are the same in the other, as far as something is written there.
 */
import { major, valid } from 'semver';
import type { CachePolicy } from '../../contracts/pipeline.ts';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { canonicalJson } from '../canonical-json.ts';
import { extendPointer } from '../json-pointer.ts';
import type { MediaPlaces } from './media-places.ts';

/** Within which equal calls share a result. */
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
  /** That an instance must have, in any order. */
  readonly tags: readonly string[];
  readonly input: JsonObject;
  readonly places: MediaPlaces;
  /** SHA-256 of each file that is read, by its reference. */
  readonly digests: ReadonlyMap<string, string>;
}

/** Who may answer it. */
export interface KeyedSpec {
  readonly version: string;
  readonly digest: string;
}

/** The text whose digest is the key. */
export function cacheKeyText(call: KeyedCall, spec: KeyedSpec): string {
  const { projectId, scope, capability, tags, input, places, digests } = call;
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
  });
}

function majorOf(version: string): string {
  return valid(version) === null ? version : String(major(version));
}

/** What stands for files elsewhere is null here; a null of the author's has no file at its pointer. */
function withoutFiles(value: Json, pointer: string, places: MediaPlaces): Json {
  if (Object.hasOwn(places.sources, pointer) || Object.hasOwn(places.targets, pointer)) return null;
  if (Array.isArray(value)) {
    return value.map((child, index) => withoutFiles(child as Json, extendPointer(pointer, index), places));
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) => [
      key,
      withoutFiles(child as Json, extendPointer(pointer, key), places),
    ]),
  );
}

/** Of each path to write to: its extension, and the first place in the input that names the same path. */
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
