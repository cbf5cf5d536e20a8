/**
 * The instances that projects of the console's tests call, started once for all of them: the lender of the Capstan owns
 * them and shares them with every project.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CapstanClient } from '../../../../test/support/capstan.ts';
import {
  answer,
  echo,
  type Handler,
  type Instance,
  type InstanceOptions,
  startInstance,
} from '../../../../test/support/fleet.ts';
import { borrowFleet } from '../../../../test/support/lend-capstan.ts';
import { placeOf } from '../../../../test/support/places.ts';
import { type SharedCapstan, shareCapstan } from '../../../../test/support/shared-capstan.ts';

const picky: Handler = (exec, response) =>
  Number.isInteger(exec.input.rate)
    ? echo(exec, response)
    : answer(response, 422, {
        ok: false,
        error: `rate must be a whole number of Hz, not ${exec.input.rate}`,
      });

/** Writes what it answers with, as a capability does. */
function writing(mediaUrl: string): Handler {
  return async (exec, response) => {
    const [, path] = String(exec.input.output_path).split('media://');
    if (path !== undefined) {
      const target = join(fileURLToPath(mediaUrl), path);
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, 'film');
    }
    await echo(exec, response);
  };
}

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

const members: readonly InstanceOptions[] = [
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

type Lender = CapstanClient & { readonly mediaUrl: string };

async function startMember(capstan: Lender, index: number): Promise<Instance> {
  const options = members[index] as InstanceOptions;
  const handle = options.name === 'concat' ? writing(capstan.mediaUrl) : options.handle;
  return startInstance(capstan, { ...options, ...(handle && { handle }), shared_with: 'all' });
}

const heartbeatMs = 20_000;

/** As instances do that live longer than a test. @returns stops it */
function keepAlive({ request }: CapstanClient, instances: readonly Instance[]): () => void {
  const beat = (): void => {
    for (const [index, { endpoint }] of instances.entries()) {
      const path = `/v1/capabilities/${members[index]?.name}/heartbeat`;
      void request('POST', path, { endpoint }).catch(() => undefined);
    }
  };
  const timer = setInterval(beat, heartbeatMs);
  return () => clearInterval(timer);
}

/** By the lender of the Capstan of all tests, once. @returns stops it */
export async function startFleet(capstan: Lender): Promise<() => Promise<void>> {
  const instances = await Promise.all(members.map((_, index) => startMember(capstan, index)));
  const rest = keepAlive(capstan, instances);
  return async () => {
    rest();
    await Promise.all(instances.map((instance) => instance.stop()));
  };
}

/** A project that calls them. */
export async function shareFleet(): Promise<SharedCapstan> {
  await borrowFleet(placeOf('lender'));
  return shareCapstan();
}
