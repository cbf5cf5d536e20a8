/**
 * Which errors of a value with holes hold whatever stands in the holes. Keys are known, so what is said about keys
 * holds; what is said about values holds where no hole is; what a branch says holds for nothing but that branch.
 */
import type { ErrorObject } from 'ajv';

/** Judge by keys or by the number of items, or by the kind of a value that is no hole itself. */
const aboutKeys: ReadonlySet<string> = new Set([
  'additionalProperties',
  'dependentRequired',
  'maxItems',
  'maxProperties',
  'minItems',
  'minProperties',
  'propertyNames',
  'required',
  'type',
]);

/** Not all of what they apply has to hold. */
const aboutBranches: ReadonlySet<string> = new Set(['anyOf', 'contains', 'if', 'not', 'oneOf']);

export function keepCertain(
  errors: readonly ErrorObject[],
  holes: ReadonlySet<string>,
): readonly ErrorObject[] {
  const aroundHoles = listAround(holes);
  const branched = new Set(
    errors.filter(({ keyword }) => aboutBranches.has(keyword)).map(({ instancePath }) => instancePath),
  );
  return errors.filter(({ keyword, instancePath }) => {
    if (holes.has(instancePath)) return false;
    if (aboutBranches.has(keyword)) return !aroundHoles.has(instancePath) && !isBelow(instancePath, branched);
    if (branched.has(instancePath) || isBelow(instancePath, branched)) return false;
    return aboutKeys.has(keyword) || !aroundHoles.has(instancePath);
  });
}

function listAround(holes: ReadonlySet<string>): ReadonlySet<string> {
  const around = new Set<string>();
  for (const hole of holes) for (const pointer of listAbove(hole)) around.add(pointer);
  return around;
}

/** All pointers to what a value is in, the whole first. */
function listAbove(pointer: string): string[] {
  const above: string[] = [];
  for (let end = pointer.indexOf('/'); end >= 0; end = pointer.indexOf('/', end + 1)) {
    above.push(pointer.slice(0, end));
  }
  return above;
}

function isBelow(pointer: string, places: ReadonlySet<string>): boolean {
  return places.size > 0 && listAbove(pointer).some((above) => places.has(above));
}
