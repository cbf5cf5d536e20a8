/** A binary min-heap of step indexes. */
export interface IndexHeap {
  readonly push: (index: number) => void;
  /** Removes and returns the smallest; undefined when empty. */
  readonly pop: () => number | undefined;
}

export function createIndexHeap(): IndexHeap {
  const items: number[] = [];
  const at = (position: number): number => items[position] ?? Number.POSITIVE_INFINITY;

  const push = (index: number): void => {
    let position = items.push(index) - 1;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if (at(parent) <= index) break;
      items[position] = at(parent);
      position = parent;
    }
    items[position] = index;
  };

  const pop = (): number | undefined => {
    const smallest = items[0];
    const moved = items.pop();
    if (moved === undefined || items.length === 0) return smallest;
    let position = 0;
    for (;;) {
      const left = 2 * position + 1;
      const child = at(left + 1) < at(left) ? left + 1 : left;
      if (at(child) >= moved) break;
      items[position] = at(child);
      position = child;
    }
    items[position] = moved;
    return smallest;
  };

  return { push, pop };
}
