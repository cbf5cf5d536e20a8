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
 * Fitted to 26,392 finished requests of GenTD26 (alibaba/clusterdata, cluster-trace-v2026-GenAI): 79 models, of which
 * eleven get nine tenths of the requests; work by model, lognormal; a third of the loads quick, the others normal, cut.
 */
const fitted = {
  count: 26_392,
  /** Parts of the requests, and the work of their models, s. */
  usual: [
    [0.312, 18],
    [0.151, 40],
    [0.095, 21],
    [0.08, 21],
    [0.074, 69],
    [0.043, 23],
    [0.036, 21],
    [0.029, 41],
    [0.027, 22],
    [0.027, 22],
    [0.022, 23],
  ],
  /** All others, which decline by rank. */
  rare: { models: 68, share: 0.104, skew: 0.8, workS: 23 },
  /** What people want changes: after so many requests, the parts are drawn again around these. */
  fashion: { every: 1_500, usual: 0.6, rare: 2 },
  /** Requests come in bursts, around what is in fashion. */
  burst: { every: 30, deviation: 0.9 },
  workDeviation: 0.25,
  load: { quick: 0.35, quickS: 3, usualS: 33, deviationS: 9, leastS: 4 },
} as const;

type Random = () => number;

function drawNormal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Its mean is 1. */
function drawFactor(random: Random, deviation: number): number {
  return Math.exp(deviation * drawNormal(random) - deviation ** 2 / 2);
}

function drawLoad(random: Random): number {
  const { quick, quickS, usualS, deviationS, leastS } = fitted.load;
  if (random() < quick) return quickS;
  return Math.max(leastS, usualS + deviationS * drawNormal(random));
}

interface Model {
  readonly share: number;
  readonly workS: number;
  readonly isRare: boolean;
}

function listModels(): readonly Model[] {
  const { models, share, skew, workS } = fitted.rare;
  const ranks = Array.from({ length: models }, (_, at) => (at + 1) ** -skew);
  const sum = ranks.reduce((all, rank) => all + rank, 0);
  return [
    ...fitted.usual.map(([part, usualS]) => ({ share: part, workS: usualS, isRare: false })),
    ...ranks.map((rank) => ({ share: (share * rank) / sum, workS, isRare: true })),
  ];
}

/** The number of one of them. */
function drawOne(random: Random, weights: readonly number[]): number {
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
  const at = weights.findIndex((weight) => {
    left -= weight;
    return left < 0;
  });
  return Math.max(0, at);
}

function drawTrace(seed: number, count: number): Trace {
  const random = createRandom(seed).uniform;
  const { rare, fashion, burst, workDeviation } = fitted;
  const models = listModels();
  let wanted: readonly number[] = [];
  let now: readonly number[] = [];
  const requests = Array.from({ length: count }, (_, at) => {
    if (at % fashion.every === 0) {
      wanted = models.map(
        ({ share, isRare }) => share * drawFactor(random, isRare ? fashion.rare : fashion.usual),
      );
    }
    if (at % burst.every === 0) now = wanted.map((share) => share * drawFactor(random, burst.deviation));
    const number = drawOne(random, now);
    const { workS = rare.workS } = models[number] ?? {};
    return { model: `model-${number}`, workS: workS * drawFactor(random, workDeviation) };
  });
  return { requests, loads: Array.from({ length: 2_000 }, () => drawLoad(random)) };
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
