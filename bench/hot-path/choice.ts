/**
 * What one choice with its explanation costs. Fleets are half free and half paid, under
 * random load, of which one instance's changes before each choice; the priorities take turns. The bars hold for
 * calls that ask for no more; a version range, a tag, a ceiling and a budget, all at once, are shown beside them.
 * The figure is processor time, garbage collection included: the lower quartile of the means of 160 batches, for a
 * neighbour on the same core only ever adds.
 */
import { choose } from '@capstan/core/routing/choose';
import { priorDuration } from '@capstan/core/routing/estimate';
import { explainChoice } from '@capstan/core/routing/explain';
import type { InstanceSnapshot, RouteRequest } from '@capstan/core/routing/types';
import { createRandom, type Random } from '../shared/random.ts';
import type { Figure } from './figure.ts';

const bars: [size: number, maxMicroseconds: number][] = [
  [50, 5],
  [1_000, 50],
];

/** A router serves a few capabilities again and again, whose load changes a little between calls. */
const capabilities = 2;

function hex(random: Random, digits: number): string {
  return Array.from({ length: digits }, () => random.below(16).toString(16)).join('');
}

type Loaded = { -readonly [Key in keyof InstanceSnapshot]: InstanceSnapshot[Key] };

function createInstance(random: Random, at: number): Loaded {
  const isFree = at % 2 === 0;
  return {
    instance_id: `ins_${hex(random, 8)}-${hex(random, 4)}-7${hex(random, 3)}-a${hex(random, 3)}-${hex(random, 12)}`,
    name: 'upscale',
    version: `1.${random.below(4)}.0`,
    endpoint: `http://10.0.${at >> 8}.${at & 255}:8100`,
    cost_type: isFree ? 'free' : at % 4 === 1 ? 'per_call' : 'per_second',
    rate_usd: isFree ? 0 : 0.001 * (1 + random.below(20)),
    tags: isFree ? ['local', 'gpu'] : ['gpu', 'eu'],
    max_concurrency: 1 + random.below(4),
    state: random.below(20) === 0 ? 'suspect' : random.below(20) === 0 ? 'down' : 'up',
    spec_digest: null,
    held: random.below(5),
    reported_extra: random.below(10) === 0 ? 1 : 0,
    duration_ms: random.below(20) === 0 ? null : 1_000 + 20_000 * random.uniform(),
    deviation_ms: 500 * random.uniform(),
    mean_cost_usd: null,
    success_count: random.below(50),
    failure_count: random.below(3),
    breaker_until_ms: null,
    settle: 'computed',
    is_local: isFree,
    host_room: null,
    host_calls: null,
  };
}

const askNothing = { versionRange: null, tags: [], ceilingUsd: null, headroomUsd: null };
const askAll = { versionRange: '^1.0.0', tags: ['gpu'], ceilingUsd: 0.5, headroomUsd: 10 };

function createRequests(
  fleet: readonly InstanceSnapshot[],
  asked: typeof askNothing | typeof askAll,
): RouteRequest[] {
  return (['interactive', 'standard', 'batch'] as const).map((priority) => ({
    capability: 'upscale',
    priority,
    timeoutMs: 300_000,
    nowMs: 1_700_000_000_000,
    priorMs: priorDuration(fleet),
    ruledOut: new Map(),
    busy: new Map<string, number>(),
    ...asked,
  }));
}

interface Load {
  readonly fleet: readonly Loaded[];
  readonly requests: readonly RouteRequest[];
}

function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Makes every request on every fleet. @returns how many choices */
function chooseOnce(loads: readonly Load[], random: Random): number {
  let choices = 0;
  for (const { fleet, requests } of loads) {
    for (const request of requests) {
      const changed = fleet[random.below(fleet.length)];
      if (changed !== undefined) changed.held = random.below(5);
      const choice = choose(fleet, request, choices++);
      explainChoice(request, choice, { decision_id: 'dec_1', chosen: choice.best?.isFull === false });
    }
  }
  return choices;
}

/** @returns µs of processor time for one choice with its explanation */
function measure(size: number, asked: typeof askNothing | typeof askAll): number {
  const random = createRandom(1);
  const loads = Array.from({ length: capabilities }, () => {
    const fleet = Array.from({ length: size }, (_, at) => createInstance(random, at));
    return { fleet, requests: createRequests(fleet, asked) };
  });
  const batch = Math.ceil(20_000 / size);
  const means = Array.from({ length: 200 }, () => {
    const from = processorTime();
    let choices = 0;
    for (let count = 0; count < batch; count++) choices += chooseOnce(loads, random);
    return (processorTime() - from) / choices;
  });
  return means.slice(40).sort((a, b) => a - b)[40] ?? Number.NaN;
}

export function measureChoice(): Figure[] {
  return bars.flatMap(([size, limit]): Figure[] => [
    {
      name: `choice among ${size} instances`,
      value: measure(size, askNothing),
      unit: 'µs',
      bar: { kind: '<=', limit },
    },
    {
      name: `choice among ${size} instances, all asked`,
      value: measure(size, askAll),
      unit: 'µs',
      bar: null,
    },
  ]);
}
