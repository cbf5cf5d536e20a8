/** A binary heap: a queue whose next item is the one that is before all others. Pushing and popping take O(log n). */

export interface Heap<Item> {
  push(item: Item): void;
  /** Removes and returns the first item; undefined when empty. */
  pop(): Item | undefined;
  /** The first item, which stays. */
  peek(): Item | undefined;
}

export function createHeap<Item>(isBefore: (one: Item, other: Item) => boolean): Heap<Item> {
  const items: Item[] = [];
  const mayRise = (child: number, parent: number): boolean =>
    child < items.length && isBefore(items[child] as Item, items[parent] as Item);
  const swap = (one: number, other: number): void => {
    [items[one], items[other]] = [items[other] as Item, items[one] as Item];
  };

  const push = (item: Item): void => {
    let at = items.push(item) - 1;
    for (let parent = (at - 1) >> 1; at > 0 && mayRise(at, parent); parent = (at - 1) >> 1) {
      swap(at, parent);
      at = parent;
    }
  };

  const pop = (): Item | undefined => {
    if (items.length < 2) return items.pop();
    swap(0, items.length - 1);
    const first = items.pop();
    for (let at = 0; ; ) {
      const left = 2 * at + 1;
      const child = mayRise(left + 1, left) ? left + 1 : left;
      if (!mayRise(child, at)) return first;
      swap(at, child);
      at = child;
    }
  };

  return { push, pop, peek: () => items[0] };
}
