/**
 * `npm run compose:check`: compose.yaml is read by the reference library of Docker Compose and held to rules of its own.
 * Then it is played: the image is built by buildah, and every service, health check and task runs as a process with the
 * environment, files and volumes that the file gives, in a network of its own. Postgres and Temporal are programs of
 * this machine, because no registry is in reach.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createTemporaryFolder } from '../src/dev/data-folder.ts';
import { chooseAccount, findPrograms } from '../src/dev/postgres/programs.ts';
import { findOnPath } from '../src/dev/programs.ts';
import { createSupervisor } from '../src/dev/supervisor/supervisor.ts';
import { findCacheDir, findTemporal } from '../src/dev/temporal/source.ts';
import { findTemporalPrograms } from './cluster/programs.ts';
import { type ContainerPlace, type ImageRoot, writeStandIns } from './compose/container.ts';
import { type ComposeProject, readProject } from './compose/project.ts';
import { findFaults } from './compose/rules.ts';
import { buildImage, makeBase } from './image/build-image.ts';
import { type Buildah, createBuildah } from './image/buildah.ts';
import { runCommand } from './package/run-command.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

async function stage<Result>(title: string, work: () => Promise<Result>): Promise<Result> {
  const from = performance.now();
  const result = await work();
  console.log(`ok  ${title}  ${((performance.now() - from) / 1000).toFixed(1)} s`);
  return result;
}

async function readValid(): Promise<ComposeProject> {
  const project = await readProject(join(root, 'compose.yaml'));
  const faults = findFaults(project);
  if (faults.length > 0) throw new Error(`compose.yaml:\n${faults.join('\n')}`);
  return project;
}

async function openImage(buildah: Buildah, image: string): Promise<ImageRoot> {
  const { OCIv1 } = JSON.parse(await buildah.run(['inspect', '--type', 'image', image]));
  const { Env: variables, Entrypoint: entrypoint } = OCIv1.config;
  const container = (await buildah.run(['from', '--pull-never', image])).trim();
  const environment = Object.fromEntries(
    (variables as string[]).map((text) => [
      text.slice(0, text.indexOf('=')),
      text.slice(text.indexOf('=') + 1),
    ]),
  );
  return { root: (await buildah.run(['mount', container])).trim(), environment, entrypoint };
}

/** What the image of Postgres does at a start, with the programs of npm. */
async function describePostgres(): Promise<string> {
  const account = chooseAccount();
  const { initdb, postgres } = await findPrograms(account, findCacheDir(process.env, homedir()));
  const as = `setpriv --reuid=${account?.uid ?? 0} --regid=${account?.gid ?? 0} --clear-groups`;
  return `#!/bin/sh
set -eu
data=/var/lib/postgresql/18/docker
if [ ! -s "$data/PG_VERSION" ]; then
  mkdir -p "$data"
  chown -R ${account?.uid ?? 0}:${account?.gid ?? 0} /var/lib/postgresql
  ${as} '${initdb}' --pgdata="$data" --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" \\
    --auth=scram-sha-256 --encoding=UTF8 --locale=C
  echo "create database $POSTGRES_DB" | ${as} '${postgres}' --single -D "$data" postgres
  echo 'host all all all scram-sha-256' >> "$data/pg_hba.conf"
fi
shift
exec ${as} '${postgres}' -D "$data" -c listen_addresses='*' -c unix_socket_directories= "$@"
`;
}

async function findStandIns(): Promise<Readonly<Record<string, string>>> {
  const { temporalServer, temporalSql } = await findTemporalPrograms();
  const cacheDir = findCacheDir(process.env, homedir());
  const cli = await findTemporal({ cacheDir, environment: process.env }, () => undefined);
  return {
    'docker-entrypoint.sh': await describePostgres(),
    'temporal-server': temporalServer,
    'temporal-sql-tool': temporalSql,
    temporal: cli.path,
    nc: '#!/usr/bin/env bash\nexec 3<>"/dev/tcp/$2/$3"\n',
  };
}

async function writeSecrets(project: ComposeProject, folder: string): Promise<ComposeProject> {
  await mkdir(folder);
  const texts = {
    'postgres-password': randomBytes(24).toString('hex'),
    'payload-keys': `k1:${randomBytes(32).toString('base64')}`,
  };
  for (const [name, text] of Object.entries(texts))
    await writeFile(join(folder, name), `${text}\n`, { mode: 0o444 });
  const secrets = Object.fromEntries(
    Object.keys(project.secrets).map((name) => [name, { file: join(folder, name) }]),
  );
  return { ...project, secrets };
}

/** In a network, mounts and processes of its own, all of which end with it. */
async function play(place: ContainerPlace, scratch: string): Promise<void> {
  const apart = ['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const loader = pathToFileURL(join(root, 'node_modules/tsx/dist/loader.mjs')).href;
  const program = [process.execPath, '--import', loader, join(root, 'scripts/compose/inside.ts')];
  const file = join(scratch, 'place.json');
  await writeFile(file, JSON.stringify({ ...place, hosts: join(scratch, 'hosts') }));
  console.log((await runCommand([...apart, ...program, file], { cwd: scratch })).trim());
}

async function checkAll(buildahProgram: string | null): Promise<void> {
  const project = await stage('compose.yaml is valid, and keeps the rules', readValid);
  const obstacle =
    buildahProgram === null ? 'there is no buildah here (apt install buildah)' : findObstacle();
  if (obstacle !== null) return console.log(`NOT played: ${obstacle}`);
  const scratch = createTemporaryFolder('capstan-compose-', ['/var/tmp']);
  const supervisor = createSupervisor({ report: () => undefined, temporaryFolder: scratch });
  const buildah = createBuildah(buildahProgram as string, scratch);
  try {
    const standIns = join(scratch, 'stand-ins');
    await stage('stand-ins for Postgres and Temporal', async () =>
      writeStandIns(standIns, await findStandIns()),
    );
    await stage('a base of Debian and this Node', () => makeBase(buildah, scratch));
    const name = await stage('the image is built', () => buildImage(buildah));
    const image = await openImage(buildah, name);
    const [volumes, logs] = [join(scratch, 'volumes'), join(scratch, 'logs')];
    const whole = await writeSecrets(project, join(scratch, 'secrets'));
    await play({ project: whole, image, standIns, volumes, logs }, scratch);
  } finally {
    await supervisor.stop();
  }
}

function findObstacle(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'namespaces need root on Linux';
  return null;
}

await checkAll(await findOnPath('buildah', process.env)).catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
