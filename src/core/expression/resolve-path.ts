/**
 * Follows a path through a scope by own properties of plain objects and lists only. What does not exist
 * (a key, an item, anything below null) is missing; a segment of the wrong form for what stands there
 * (`[0]` on an object, `.x` on a list or a string) is an error that `??` does not cover.
 */
import type { Json } from '../../contracts/primitives.ts';
import { isPlainObject, jsonTypeOf } from '../json-type.ts';
import { createNameSuggester } from '../nearest-name.ts';
import type { Path, Segment } from './ast.ts';
import {
  describeValue,
  type Evaluation,
  evaluationError,
  found,
  missing,
  type Outcome,
  spendItems,
} from './evaluation.ts';
import { formatPath } from './format-path.ts';

/** A place on the way: what stands there and the concrete path that led to it. */
interface PathStop {
  readonly value: unknown;
  /** Segments followed so far, each `[*]` replaced by the item's index. */
  readonly trail: readonly Segment[];
}

export function resolvePath(path: Path, evaluation: Evaluation): Outcome {
  const value = Object.hasOwn(evaluation.scope, path.root) ? evaluation.scope[path.root] : undefined;
  if (value === undefined) return missing(() => ({ message: `${path.root} has no value here` }));
  return follow({ value, trail: [] }, path, evaluation);
}

function follow(start: PathStop, path: Path, evaluation: Evaluation): Outcome {
  let place = start;
  for (let position = start.trail.length; position < path.segments.length; position++) {
    const segment = path.segments[position] ?? '';
    if (place.value === null) return missingBelowNull(place, path);
    if (typeof segment === 'object') return followEach(place, path, evaluation);
    const next =
      typeof segment === 'number'
        ? itemAt(place, segment, path, evaluation)
        : fieldAt(place, segment, path, evaluation);
    if (next === undefined) return missingAt(place, segment, path);
    place = { value: next, trail: [...place.trail, segment] };
  }
  if (jsonTypeOf(place.value) === null)
    throw evaluationError(evaluation, `${nameOf(place, path)} is ${describeValue(place.value)}`);
  return found(place.value as Json);
}

function nameOf(place: PathStop, path: Path): string {
  return formatPath(path.root, place.trail);
}

function itemAt(place: PathStop, index: number, path: Path, evaluation: Evaluation): unknown {
  if (!Array.isArray(place.value)) throw wrongSegment(place, `[${index}]`, path, evaluation);
  return Object.hasOwn(place.value, index) ? place.value[index] : undefined;
}

function fieldAt(place: PathStop, key: string, path: Path, evaluation: Evaluation): unknown {
  if (!isPlainObject(place.value)) throw wrongSegment(place, formatPath('', [key]), path, evaluation);
  return Object.hasOwn(place.value, key) ? place.value[key] : undefined;
}

function followEach(place: PathStop, path: Path, evaluation: Evaluation): Outcome {
  if (!Array.isArray(place.value)) throw wrongSegment(place, '[*]', path, evaluation);
  spendItems(evaluation, place.value.length);
  const values: Json[] = [];
  for (const [index, value] of place.value.entries()) {
    if (value === null) {
      values.push(null); // such as an item that was allowed to fail
      continue;
    }
    const outcome = follow({ value, trail: [...place.trail, index] }, path, evaluation);
    if (!outcome.found) return outcome;
    values.push(outcome.value);
  }
  return found(values);
}

function wrongSegment(place: PathStop, segment: string, path: Path, evaluation: Evaluation) {
  return evaluationError(
    evaluation,
    `${segment} does not apply to ${nameOf(place, path)}, which is ${describeValue(place.value)}`,
  );
}

const defaultHint = 'add ?? with a default where it may be missing';

function missingBelowNull(place: PathStop, path: Path): Outcome {
  return missing(() => ({
    message: `${formatPath(path.root, path.segments)} does not exist: ${nameOf(place, path)} is null`,
    suggestion: defaultHint,
  }));
}

function missingAt(place: PathStop, segment: string | number, path: Path): Outcome {
  return missing(() => {
    const wanted = formatPath(path.root, [...place.trail, segment]);
    return {
      message: `${wanted} does not exist: ${nameOf(place, path)} is ${describeValue(place.value)}`,
      suggestion: suggestKey(place.value, segment) ?? defaultHint,
    };
  });
}

/** Among how many keys the nearest is looked for. */
const consideredKeys = 1_000;

function suggestKey(value: unknown, segment: string | number): string | undefined {
  if (typeof segment === 'number' || !isPlainObject(value)) return undefined;
  return createNameSuggester(Object.keys(value).slice(0, consideredKeys))(segment);
}
