/**
 * So many names at once, so that nobody can fill a registry by inventing some. A name stays as long as it is used: a new one
 * takes the place of the one that was used longest ago.
 */
export interface NameLimit {
  /**
   * @param round names that were used in the same one give no place to each other
   * @returns the name, or `other` when there is no place for it
   */
  use(name: string, round: object): string;
  has(name: string): boolean;
}

/** @param onEnd a name has given its place away */
export function createNameLimit(most: number, onEnd: (name: string) => void): NameLimit {
  /** From the one that was used longest ago. */
  const known = new Map<string, object>();
  const findPlace = (round: object): boolean => {
    if (known.size < most) return true;
    const [oldest] = known;
    if (oldest === undefined || oldest[1] === round) return false;
    known.delete(oldest[0]);
    onEnd(oldest[0]);
    return true;
  };
  return {
    has: (name) => known.has(name),
    use: (name, round) => {
      if (!known.delete(name) && !findPlace(round)) return 'other';
      known.set(name, round);
      return name;
    },
  };
}
