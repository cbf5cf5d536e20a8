/**
 * `npm run image:check`: the Dockerfile is built by buildah where no registry is in reach, on a base of Debian made
 * from this machine, and server and worker carry out a run out of what was built, as the user of the image.
 */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createTemporaryFolder } from '../src/dev/data-folder.ts';
import { findOnPath } from '../src/dev/programs.ts';
import { createPrinter } from '../src/dev/progress.ts';
import { createSupervisor } from '../src/dev/supervisor/supervisor.ts';
import { makeBaseRoot } from './image/base-root.ts';
import { type Buildah, createBuildah } from './image/buildah.ts';
import { runFromImage } from './image/run-from-image.ts';
import { startBacking } from './package/backing.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const base = 'localhost/capstan-base';
const image = 'localhost/capstan';
const certificates = '/etc/ssl/certs/ca-certificates.crt';

async function stage<Result>(title: string, work: () => Promise<Result>): Promise<Result> {
  const from = performance.now();
  const result = await work();
  console.log(`ok  ${title}  ${((performance.now() - from) / 1000).toFixed(1)} s`);
  return result;
}

async function makeBase(buildah: Buildah, scratch: string): Promise<void> {
  const folder = join(scratch, 'base');
  await makeBaseRoot(folder);
  const container = (await buildah.run(['from', 'scratch'])).trim();
  await buildah.run(['add', '--quiet', container, folder, '/']);
  const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  await buildah.run(['config', '--env', path, '--env', `NODE_EXTRA_CA_CERTS=${certificates}`, container]);
  await buildah.run(['commit', '--quiet', '--rm', container, base]);
}

/** npm's settings of this machine, if it has any, are lent to the build and are no part of the image. */
async function buildImage(buildah: Buildah): Promise<void> {
  const settings = join(homedir(), '.npmrc');
  const lent = existsSync(settings) ? ['--volume', `${settings}:/root/.npmrc:ro`] : [];
  const from = ['--pull-never', '--build-arg', `NODE_IMAGE=${base}`, ...lent];
  await buildah.run(['bud', '--isolation', 'chroot', '--format', 'docker', ...from, '--tag', image, root]);
}

async function describeImage(buildah: Buildah): Promise<string> {
  const printed = await buildah.run(['images', '--format', '{{.Name}} {{.Size}}', image]);
  return printed.trim().split('\n').at(-1) ?? '';
}

async function checkAll(program: string): Promise<void> {
  const scratch = createTemporaryFolder('capstan-image-', ['/var/tmp']);
  const printer = createPrinter(process.stdout);
  const supervisor = createSupervisor({ report: printer.report, temporaryFolder: scratch });
  const buildah = createBuildah(program, scratch);
  try {
    await stage('a base of Debian and this Node', () => makeBase(buildah, scratch));
    await stage('built', () => buildImage(buildah));
    console.log(`    ${await describeImage(buildah)}`);
    const backing = await stage('a Postgres and a Temporal', () =>
      startBacking(supervisor, scratch, printer.report),
    );
    await stage('migrate, server and worker out of the image carry out a run', () =>
      runFromImage({ buildah, image, scratch, supervisor, backing }),
    );
  } finally {
    await supervisor.stop();
    printer.close();
  }
}

const program = await findOnPath('buildah', process.env);
if (program === null) {
  console.log('NOT checked: there is no buildah here (apt install buildah); the Dockerfile was not built');
} else {
  await checkAll(program).catch((error: Error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
