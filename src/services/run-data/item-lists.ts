/** Lists of `for_each` that were worked out, so that their items do not all do it again. */
import { LRUCache } from 'lru-cache';
import type { Json } from '../../contracts/primitives.ts';
import type { Evaluated } from '../../core/run/decide-step.ts';

type List = Evaluated<readonly Json[]>;

export interface ItemLists {
  /** The list under this name; asked for twice at once, it is made once. */
  of(name: string, make: () => Promise<List>): Promise<List>;
}

const cacheBytes = 64 * 1_048_576;
const mostKept = 1_000;

export function createItemLists(): ItemLists {
  const kept = new LRUCache<string, { list: List; size: number }>({
    max: mostKept,
    maxSize: cacheBytes,
    sizeCalculation: ({ size }) => size,
  });
  const underWay = new Map<string, Promise<List>>();

  const makeAndKeep = async (name: string, make: () => Promise<List>): Promise<List> => {
    const list = await make();
    if ('value' in list) kept.set(name, { list, size: JSON.stringify(list.value).length + 100 });
    return list;
  };

  return {
    of: (name, make) => {
      const known = kept.get(name);
      if (known !== undefined) return Promise.resolve(known.list);
      const made = underWay.get(name) ?? makeAndKeep(name, make).finally(() => underWay.delete(name));
      underWay.set(name, made);
      return made;
    },
  };
}
