/**
 * "Did you mean": the known name closest to an unknown one. Work is bounded for hostile input: names of very different
 * length are skipped, and a distance above the allowed one ends early. One finder answers for at most 100 different
 * unknown names, and compares at most 100,000 times.
 */
function allowedDistance(name: string): number {
  return Math.min(3, Math.max(1, Math.floor(name.length / 3)));
}

/**
 * Edit distance (insert, delete, replace, swap neighbours), or `limit + 1` once it exceeds `limit`. Computes only cells
 * within `limit` of the diagonal.
 */
export function editDistance(a: string, b: string, limit: number): number {
  const beyond = limit + 1;
  if (Math.abs(a.length - b.length) > limit) return beyond;
  const rows = [0, 1, 2].map(() => new Array<number>(b.length + 2).fill(beyond));
  let [beforeLast, last, current] = rows as [number[], number[], number[]];
  for (let column = 0; column < beyond && column <= b.length; column++) last[column] = column;
  for (let row = 1; row <= a.length; row++) {
    const begin = Math.max(1, row - limit);
    const end = Math.min(b.length, row + limit);
    // Of the cells outside, the next rows read only those beside these.
    current[begin - 1] = begin === 1 ? Math.min(row, beyond) : beyond;
    current[end + 1] = beyond;
    let smallest = current[begin - 1] as number;
    for (let column = begin; column <= end; column++) {
      let cost = Math.min(
        (last[column] as number) + 1,
        (current[column - 1] as number) + 1,
        (last[column - 1] as number) + (a[row - 1] === b[column - 1] ? 0 : 1),
      );
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) cost = Math.min(cost, (beforeLast[column - 2] as number) + 1);
      current[column] = Math.min(cost, beyond);
      smallest = Math.min(smallest, cost);
    }
    if (smallest > limit) return beyond;
    [beforeLast, last, current] = [last, current, beforeLast];
  }
  return last[b.length] as number;
}

function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let limit = allowedDistance(name);
  const small = name.toLowerCase();
  for (const candidate of candidates) {
    if (candidate === name || Math.abs(candidate.length - name.length) > limit) continue;
    const distance = editDistance(small, candidate.toLowerCase(), limit);
    if (distance > limit) continue;
    best = candidate;
    limit = distance - 1;
    if (limit < 0) break;
  }
  return best;
}

const allowedAre = '; allowed are ';

/** The message of a finding about an unknown key. */
export function describeUnknownKey(key: string, known: readonly string[]): string {
  return `unknown key ${JSON.stringify(key.slice(0, 64))}${allowedAre}${known.join(', ')}`;
}

/** Splits a message into the fault and the allowed values, which may be a long list; null when it lists none. */
export function splitAllowed(message: string): readonly [wrong: string, allowed: string | null] {
  const at = message.indexOf(allowedAre);
  return at < 0 ? [message, null] : [message.slice(0, at), message.slice(at + allowedAre.length)];
}

/** The name that a suggestion of `createNameSuggester` offers; null for any other suggestion. */
export function readSuggestedName(suggestion: string): string | null {
  const name = /^did you mean (".*")\?$/.exec(suggestion)?.[1];
  return name === undefined ? null : String(JSON.parse(name));
}

/** `did you mean "concat"?`, or undefined when no known name is close. */
export type SuggestName = (unknown: string) => string | undefined;

const answeredNames = 100;
const comparedNames = 100_000;
const longestName = 256;

export function createNameSuggester(candidates: Iterable<string>): SuggestName {
  const answers = new Map<string, string | undefined>();
  const known = [...candidates];
  return (unknown) => {
    if (!answers.has(unknown)) {
      const most = Math.min(answeredNames, comparedNames / known.length);
      if (answers.size >= most || unknown.length > longestName) return undefined;
      const nearest = nearestName(unknown, known);
      answers.set(unknown, nearest === undefined ? undefined : `did you mean ${JSON.stringify(nearest)}?`);
    }
    return answers.get(unknown);
  };
}
