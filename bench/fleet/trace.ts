/** The image requests that are replayed: of a file, or drawn from distributions that were fitted to one. */
import { readFileSync } from 'node:fs';
import { createRandom } from '../shared/random.ts';

export interface ImageRequest {
  /** The base model, which decides what must be loaded. */
  readonly model: string;
  readonly workS: number;
}

export interface Trace {
  readonly requests: readonly ImageRequest[];
  /** Seconds that a load took, in any order. */
  readonly loads: readonly number[];
}

/**
 * Fitted to 26,392 finished requests of GenTD26 (alibaba/clusterdata, cluster-trace-v2026-GenAI): 79 models, the most
 * used with 31 % of the requests, their shares about as 1 / rank ^ 1.45; work and loads lognormal, cut.
 */
const fitted = {
  count: 26_392,
  models: 79,
  skew: 1.45,
  /** What people want changes: after so many requests, the shares are drawn again around the usual ones. */
  drift: { every: 300, deviation: 1.3 },
  work: { mean: 3.15, deviation: 0.58, most: 240 },
  load: { mean: 2.8, deviation: 0.85, most: 75 },
} as const;

function drawNormal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function drawS(random: () => number, { mean, deviation, most }: (typeof fitted)['work' | 'load']): number {
  return Math.min(most, Math.exp(mean + deviation * drawNormal(random)));
}

function drawTrace(seed: number, count: number): Trace {
  const random = createRandom(seed).uniform;
  const usual = Array.from({ length: fitted.models }, (_, at) => (at + 1) ** -fitted.skew);
  const { every, deviation } = fitted.drift;
  let weights = usual;
  const drawModel = (): string => {
    let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
    const at = weights.findIndex((weight) => {
      left -= weight;
      return left < 0;
    });
    return `model-${Math.max(0, at)}`;
  };
  const requests = Array.from({ length: count }, (_, at) => {
    if (at % every === 0) weights = usual.map((weight) => weight * Math.exp(deviation * drawNormal(random)));
    return { model: drawModel(), workS: drawS(random, fitted.work) };
  });
  return { requests, loads: Array.from({ length: 2_000 }, () => drawS(random, fitted.load)) };
}

function readRows(file: string): number[][] {
  const [, ...lines] = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => line.split(',').map(Number));
}

/**
 * @param files of `at_s,model,work_s` in order of arrival, and of `load_s`; comments begin with `#`; null: draws both
 * @param count of requests; default: all of the file
 */
export function createTrace(
  files: { readonly traffic: string; readonly loads: string } | null,
  { seed, count }: { readonly seed: number; readonly count?: number | undefined },
): Trace {
  if (files === null) return drawTrace(seed, count ?? fitted.count);
  const requests = readRows(files.traffic).map(([, model, workS = 1]) => ({
    model: `model-${model}`,
    workS,
  }));
  return { requests: requests.slice(0, count), loads: readRows(files.loads).map(([loadS = 1]) => loadS) };
}
