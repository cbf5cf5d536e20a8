/** A part of the trace as runs of a real server and worker, faster than it was, on boxes that load. */
import { setTimeout as pause } from 'node:timers/promises';
import { request } from '../router/register.ts';
import type { CapstanServer } from '../router/systems.ts';
import { createRandom } from '../shared/random.ts';
import { type BoxCapability, type BoxRequest, startBoxes } from './boxes.ts';
import { findWorstModel, type Played, type Setting } from './simulate.ts';
import type { Trace } from './trace.ts';

export interface LiveSetting extends Setting {
  /** How much faster than the trace. */
  readonly speed: number;
  /** Of each box; several share the one slot of its host. */
  readonly capabilities: number;
  readonly load: number;
}

export interface Live extends Omit<Played, 'setting'> {
  readonly setting: LiveSetting;
  /** Calls that found another one on their box. */
  readonly twice: number;
}

function namesOf({ choice, instances, capabilities }: LiveSetting): readonly BoxCapability[] {
  const affinity = choice === 'resident' ? '{{ input.model }}' : null;
  const prefix = `image-${choice}-${instances}-of-${capabilities}`;
  return Array.from({ length: capabilities }, (_, at) => ({ name: `${prefix}-${at}`, affinity }));
}

interface World {
  readonly server: CapstanServer;
  readonly names: readonly BoxCapability[];
}

/** @param wish of the registration, beyond what all boxes have */
export async function registerBox(
  server: CapstanServer,
  { name, endpoint, ...wish }: { readonly name: string; readonly endpoint: string } & object,
): Promise<void> {
  await request(server, 'POST', '/v1/capabilities', {
    name,
    version: '1.0.0',
    endpoint,
    spec_url: `${endpoint}/spec`,
    health_url: `${endpoint}/health`,
    cost_model: { type: 'free', rate_usd: 0 },
    tags: [],
    max_concurrency: 1,
    ...wish,
  });
}

/** A pipeline with the name of the capability, once the server knows its boxes. */
export async function addPipeline(server: CapstanServer, name: string): Promise<void> {
  while (!(await isVetted(server, name))) await pause(100);
  await request(server, 'POST', '/v1/pipelines', {
    pipeline: name,
    version: '1',
    steps: [{ id: 'image', capability: name, input: '{{ job }}', timeout: '1h', total_timeout: '10h' }],
  });
}

async function register({ server, names }: World, endpoints: readonly (readonly string[])[]): Promise<void> {
  for (const [box, own] of endpoints.entries()) {
    const host = names.length === 1 ? {} : { host: { name: `${names[0]?.name}-${box}`, slots: 1 } };
    for (const [at, endpoint] of own.entries())
      await registerBox(server, { name: names[at]?.name ?? '', endpoint, ...host });
  }
  for (const { name } of names) await addPipeline(server, name);
}

async function isVetted(server: CapstanServer, name: string): Promise<boolean> {
  const answer = await request(server, 'GET', `/v1/capabilities/${name}`);
  const { instances } = (await answer.json()) as { instances: { spec_digest: string | null }[] };
  return instances.every(({ spec_digest }) => spec_digest !== null);
}

/**
 * @param trace the requests of the part
 * @throws the router's answer to a request that it refuses
 */
export async function playLive(
  server: CapstanServer,
  { requests, loads }: Trace,
  setting: LiveSetting,
): Promise<Live> {
  const { instances, load, seed, speed } = setting;
  const names = namesOf(setting);
  const boxes = await startBoxes(instances, names);
  await register({ server, names }, boxes.endpoints);
  const { exponential } = createRandom(seed); // arrivals as in the simulation
  const { uniform } = createRandom(seed + 1);
  const meanS = requests.reduce((sum, { workS }) => sum + workS, 0) / requests.length;
  const gapMs = (1_000 * meanS) / (instances * load * speed);
  const askedAt = new Map<number, number>();
  const starting: Promise<unknown>[] = [];
  let dueMs = performance.now();
  for (const [number, { model, workS }] of requests.entries()) {
    dueMs += exponential() * gapMs;
    await pause(Math.max(0, dueMs - performance.now()));
    const loadMs = (1_000 * (loads[Math.floor(uniform() * loads.length)] as number)) / speed;
    const job: BoxRequest = { number, model, workMs: (1_000 * workS) / speed, loadMs };
    askedAt.set(number, performance.now());
    const pipeline = names[number % names.length]?.name;
    starting.push(request(server, 'POST', '/v1/runs', { pipeline, version: '1', job }));
  }
  await Promise.all(starting);
  const { seen } = boxes;
  while (seen.calls.size < requests.length) await pause(200);
  boxes.close();
  const counted = [...seen.calls];
  const toTraceS = (ms: number): number => (ms * speed) / 1_000;
  const waits = counted.map(([number, { beganAtMs }]) => toTraceS(beganAtMs - (askedAt.get(number) ?? 0)));
  const modelOf = (at: number): string => requests[counted[at]?.[0] ?? 0]?.model ?? '';
  return {
    setting,
    waits,
    worstModelS: findWorstModel(waits, modelOf),
    cold: counted.filter(([, { isCold }]) => isCold).length / counted.length,
    busyS: toTraceS(counted.reduce((sum, [, { busyMs }]) => sum + busyMs, 0)),
    twice: seen.twice,
  };
}
