import type { Json } from '@capstan/core/contracts/primitives';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { childrenOf } from '../../../json/json-model.ts';

function escapeName(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function isSame(one: Json | undefined, other: Json | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** For a step whose result comes from an equal call; null for any other. */
export function describeCached({ cached, items }: Pick<StepDetail, 'cached' | 'items'>): string | null {
  if (cached === undefined) return null;
  return items === undefined
    ? 'the stored result of an equal call; no instance was called'
    : `${cached} of its items; no instance was called for them`;
}

/** JSON Pointers of the values in `after` that differ from `before`: the deepest ones. */
export function changedPointers(before: Json, after: Json): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (one: Json | undefined, other: Json, pointer: string): void => {
    if (isSame(one, other)) return;
    const known = one === undefined ? null : childrenOf(one);
    const now = childrenOf(other);
    const isAlike = known !== null && now !== null && Array.isArray(one) === Array.isArray(other);
    if (!isAlike) {
      found.add(pointer);
      return;
    }
    const values = new Map(known.map(({ name, value }) => [name, value]));
    for (const { name, value } of now) visit(values.get(name), value, `${pointer}/${escapeName(name)}`);
    if (now.length < known.length) found.add(pointer);
  };
  visit(before, after, '');
  return found;
}
