import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { isPlainObject } from '../json-type.ts';

/**
 * All objects that can be reached from the root, each with the number of its loop: two have the same number when
 * each leads to the other. (Tarjan's strongly connected components, in linear time.)
 * @param next what an object leads to; lists stand for what is in them
 */
export function findLoops(
  root: JsonObject,
  next: (value: JsonObject) => readonly Json[],
): ReadonlyMap<JsonObject, number> {
  const loops = new Map<JsonObject, number>();
  const order = new Map<JsonObject, number>();
  const open: JsonObject[] = [];

  /** @returns the earliest object, by its order, that this one comes back to */
  const visit = (value: JsonObject): number => {
    const index = order.size;
    order.set(value, index);
    open.push(value);
    let earliest = index;
    for (const child of flatten(next(value))) {
      if (!order.has(child)) earliest = Math.min(earliest, visit(child));
      else if (!loops.has(child)) earliest = Math.min(earliest, order.get(child) ?? index);
    }
    if (earliest === index) {
      for (const member of open.splice(open.indexOf(value))) loops.set(member, index);
    }
    return earliest;
  };

  visit(root);
  return loops;
}

function flatten(values: readonly Json[]): readonly JsonObject[] {
  return values.flatMap((value) => {
    if (Array.isArray(value)) return flatten(value);
    return isPlainObject(value) ? [value] : [];
  });
}
