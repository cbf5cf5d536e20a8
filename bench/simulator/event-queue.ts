/** What ends next: a binary heap by time. */
export interface EventQueue<Item> {
  push(at: number, item: Item): void;
  /** Time of the next event; infinite when there is none. */
  nextAt(): number;
  /** @throws Error when there is none */
  pop(): Item;
}

interface Entry<Item> {
  readonly at: number;
  readonly item: Item;
}

function siftDown<Item>(heap: Entry<Item>[], entry: Entry<Item>): void {
  let place = 0;
  for (;;) {
    const left = 2 * place + 1;
    const [one, other] = [heap[left], heap[left + 1]];
    if (one === undefined) break;
    const isOther = other !== undefined && other.at < one.at;
    const least = isOther ? other : one;
    if (least.at >= entry.at) break;
    heap[place] = least;
    place = isOther ? left + 1 : left;
  }
  heap[place] = entry;
}

function siftUp<Item>(heap: Entry<Item>[], entry: Entry<Item>): void {
  let place = heap.length;
  while (place > 0) {
    const parent = (place - 1) >> 1;
    const above = heap[parent] as Entry<Item>;
    if (above.at <= entry.at) break;
    heap[place] = above;
    place = parent;
  }
  heap[place] = entry;
}

export function createEventQueue<Item>(): EventQueue<Item> {
  const heap: Entry<Item>[] = [];
  return {
    push: (at, item) => siftUp(heap, { at, item }),
    nextAt: () => heap[0]?.at ?? Number.POSITIVE_INFINITY,
    pop: () => {
      const [first] = heap;
      const last = heap.pop();
      if (first === undefined || last === undefined) throw new Error('no event is left');
      if (heap.length > 0) siftDown(heap, last);
      return first.item;
    },
  };
}
