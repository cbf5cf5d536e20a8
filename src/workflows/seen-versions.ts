/** Signals about a review say its version and are repeated until they are taken: each version counts once. */
export interface SeenVersions {
  /** Notes what a signal said. */
  see(reviewId: string, version: number): void;
  /** Whether there is a version that woke nobody. */
  isNews(reviewId: string): boolean;
  /** Somebody was woken by the newest. */
  take(reviewId: string): void;
  /** Versions that woke nobody, by review. */
  untaken(): Readonly<Record<string, number>>;
}

export function createSeenVersions(before: Readonly<Record<string, number>> = {}): SeenVersions {
  const seen = new Map<string, number>(Object.entries(before));
  const taken = new Map<string, number>();
  const isNews = (id: string): boolean => (seen.get(id) ?? 0) > (taken.get(id) ?? 0);
  return {
    see: (id, version) => void seen.set(id, Math.max(seen.get(id) ?? 0, version)),
    isNews,
    take: (id) => void taken.set(id, seen.get(id) ?? 0),
    untaken: () => Object.fromEntries([...seen].filter(([id]) => isNews(id))),
  };
}
