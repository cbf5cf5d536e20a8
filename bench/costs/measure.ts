/** Asks the API one request after the other, as a page of the console does, and reads each answer to its end. */
export interface Measured {
  readonly name: string;
  readonly p50: number;
  readonly p99: number;
}

export interface Target {
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly projectId: string;
}

const warmUps = 20;

/** The least value that this share of the values does not exceed. @throws Error for an empty list */
function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const value = sorted[Math.ceil(share * sorted.length) - 1];
  if (value === undefined) throw new Error('a percentile of nothing');
  return value;
}

/** @throws Error when an answer is not 200 */
export async function measure(
  { apiUrl, apiKey, projectId }: Target,
  { name, path, requests }: { readonly name: string; readonly path: string; readonly requests: number },
): Promise<Measured> {
  const headers = { 'x-api-key': apiKey, 'x-project-id': projectId };
  const times: number[] = [];
  for (let request = 0; request < warmUps + requests; request++) {
    const startedAt = performance.now();
    const answer = await fetch(`${apiUrl}${path}`, { headers });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${text}`);
    if (request >= warmUps) times.push(performance.now() - startedAt);
  }
  return { name, p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
}
