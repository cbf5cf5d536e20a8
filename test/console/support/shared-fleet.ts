/**
 * The instances that projects of the console's tests call, started once for all files of a test worker: the name of a
 * capability belongs to the project that has registered it first, so one project registers all.
 */
import {
  answer,
  echo,
  type Handler,
  type Instance,
  type InstanceOptions,
  startInstance,
} from '../../support/fleet.ts';
import { type SharedCapstan, shareCapstan } from '../../support/shared-capstan.ts';

const picky: Handler = (exec, response) =>
  Number.isInteger(exec.input.rate)
    ? echo(exec, response)
    : answer(response, 422, {
        ok: false,
        error: `rate must be a whole number of Hz, not ${exec.input.rate}`,
      });

const file = {
  type: 'object',
  required: ['media_store_path'],
  properties: { media_store_path: { type: 'string' } },
};

/** As the learning demonstration's mixer takes it. */
const mixInput = {
  type: 'object',
  required: ['video', 'music', 'output_path'],
  properties: {
    video: file,
    music: file,
    output_path: { type: 'string' },
    music_gain_db: { type: 'number', minimum: -60, maximum: 20, default: -12 },
  },
};

const members: readonly (InstanceOptions & { readonly handle?: Handler })[] = [
  { name: 'trim' },
  { name: 'trim', tags: ['cloud'], cost_model: { type: 'per_call', rate_usd: 0.002 } },
  { name: 'join', cost_model: { type: 'per_call', rate_usd: 0.01 } },
  { name: 'concat' },
  { name: 'thumbnail' },
  { name: 'audio-mix', input: mixInput },
  {
    name: 'resample',
    input: { type: 'object', properties: { rate: {} }, required: ['rate'] },
    handle: picky,
  },
];

async function startMember(capstan: SharedCapstan, index: number): Promise<Instance> {
  const { handle = echo, ...options } = members[index] as (typeof members)[number];
  const instance = await startInstance(capstan, options);
  instance.handle = handle;
  return instance;
}

const heartbeatMs = 20_000;

/** As instances do that live longer than a test. */
function keepAlive({ request }: SharedCapstan, instances: readonly Instance[]): void {
  const beat = (): void => {
    for (const [index, { endpoint }] of instances.entries()) {
      const path = `/v1/capabilities/${members[index]?.name}/heartbeat`;
      void request('POST', path, { endpoint }).catch(() => undefined);
    }
  };
  setInterval(beat, heartbeatMs).unref();
}

/** Of a Capstan that may be another one after a failed test. */
const fleets = new Map<string, Promise<void>>();

async function startFleet(): Promise<void> {
  const owner = await shareCapstan();
  keepAlive(owner, await Promise.all(members.map((_, index) => startMember(owner, index))));
}

/** A project that calls them. */
export async function shareFleet(): Promise<SharedCapstan> {
  const capstan = await shareCapstan();
  const fleet = fleets.get(capstan.url) ?? startFleet();
  fleets.set(capstan.url, fleet);
  await fleet.catch((error) => {
    fleets.delete(capstan.url);
    throw error;
  });
  return capstan;
}
