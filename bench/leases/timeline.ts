/** Virtual time: what is due happens in its order, by a binary heap. */
export interface Timeline {
  now(): number;
  after(ms: number, act: () => void): void;
  runUntil(ms: number): void;
}

interface Due {
  readonly atMs: number;
  readonly act: () => void;
}

function push(heap: Due[], due: Due): void {
  let at = heap.length;
  heap.push(due);
  while (at > 0) {
    const above = (at - 1) >> 1;
    if ((heap[above] as Due).atMs <= due.atMs) break;
    heap[at] = heap[above] as Due;
    at = above;
  }
  heap[at] = due;
}

function pop(heap: Due[]): Due {
  const first = heap[0] as Due;
  const last = heap.pop() as Due;
  if (heap.length === 0) return first;
  let at = 0;
  for (;;) {
    let below = 2 * at + 1;
    if (below >= heap.length) break;
    if (below + 1 < heap.length && (heap[below + 1] as Due).atMs < (heap[below] as Due).atMs) below++;
    if ((heap[below] as Due).atMs >= last.atMs) break;
    heap[at] = heap[below] as Due;
    at = below;
  }
  heap[at] = last;
  return first;
}

export function createTimeline(): Timeline {
  const heap: Due[] = [];
  let nowMs = 0;
  return {
    now: () => nowMs,
    after: (ms, act) => push(heap, { atMs: nowMs + ms, act }),
    runUntil: (ms) => {
      while ((heap[0]?.atMs ?? Number.POSITIVE_INFINITY) <= ms) {
        const { atMs, act } = pop(heap);
        nowMs = atMs;
        act();
      }
      nowMs = ms;
    },
  };
}
