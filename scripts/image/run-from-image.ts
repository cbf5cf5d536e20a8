/** Migration, server and worker out of an image, each in a container of its own on the network of this machine. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { choosePort } from '../../src/dev/ports.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import type { Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { createApi } from '../package/api.ts';
import type { Backing } from '../package/backing.ts';
import { carryOutTrialRun } from '../package/trial-run.ts';
import type { Buildah } from './buildah.ts';

interface Place {
  readonly buildah: Buildah;
  readonly image: string;
  readonly scratch: string;
  readonly supervisor: Supervisor;
  readonly backing: Backing;
}

type Settings = Readonly<Record<string, string>>;

/** The container is a chroot, so the command is given in full: buildah runs neither entry point nor health check. */
function inContainer(container: string, settings: Settings, words: readonly string[]): readonly string[] {
  const env = Object.entries(settings).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  return ['run', '--isolation', 'chroot', ...env, container, '--', ...words];
}

async function createContainer({ buildah, image }: Place): Promise<string> {
  return (await buildah.run(['from', '--pull-never', image])).trim();
}

async function describe(name: string, place: Place, settings: Settings): Promise<ChildSpec> {
  const container = await createContainer(place);
  const words = ['node', '/app/bin/capstan.mjs', name];
  const [command = '', ...args] = place.buildah.words(inContainer(container, settings, words));
  const logFile = join(place.scratch, 'logs', `${name}.log`);
  return {
    name,
    command,
    args,
    cwd: place.scratch,
    env: process.env,
    account: null,
    logFile,
    stopSignal: 'SIGTERM',
    stopGraceMs: 40_000,
    readyTimeoutMs: 90_000,
    isReady: async () => (await readFile(logFile, 'utf8')).includes(`${name} is ready`),
  };
}

/** @throws Error that names the failed ones, with their output */
export async function runFromImage(place: Place): Promise<void> {
  const { buildah, supervisor, backing } = place;
  const port = await choosePort([]);
  const settings = {
    DATABASE_URL: backing.databaseUrl,
    TEMPORAL_ADDRESS: backing.temporalAddress,
    MEDIA_URL: 'file:///tmp/media',
    PORT: String(port),
    // The trial's capability is on this machine.
    CAPSTAN_MODE: 'development',
  };
  const keyFile = '/tmp/key';
  const container = await createContainer(place);
  // The packages for S3 are part of the image.
  const load = `cd /app && node -e "import('@aws-sdk/client-s3')"`;
  const migrate = `node /app/bin/capstan.mjs migrate --api-key-file ${keyFile} >/dev/null`;
  const make = `${load} && ${migrate} && cat ${keyFile} && id -u`;
  const printed = (await buildah.run(inContainer(container, settings, ['sh', '-c', make])))
    .trim()
    .split('\n');
  const [key = '', user = ''] = printed.slice(-2);
  if (user !== '10001') throw new Error(`it runs as user ${user}, not 10001`);
  const stops = [];
  for (const name of ['server', 'worker']) {
    stops.push(await supervisor.start(await describe(name, place, settings)));
  }
  await carryOutTrialRun(createApi(`http://127.0.0.1:${port}`, key));
  for (const stop of stops) await stop();
}
