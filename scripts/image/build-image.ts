/** The Dockerfile built by buildah where no registry is in reach, on a base of Debian made from this machine. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeBaseRoot } from './base-root.ts';
import type { Buildah } from './buildah.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const base = 'localhost/capstan-base';
const certificates = '/etc/ssl/certs/ca-certificates.crt';

export async function makeBase(buildah: Buildah, scratch: string): Promise<void> {
  const folder = join(scratch, 'base');
  await makeBaseRoot(folder);
  const container = (await buildah.run(['from', 'scratch'])).trim();
  await buildah.run(['add', '--quiet', container, folder, '/']);
  const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  await buildah.run(['config', '--env', path, '--env', `NODE_EXTRA_CA_CERTS=${certificates}`, container]);
  await buildah.run(['commit', '--quiet', '--rm', container, base]);
}

/** npm's settings of this machine, if it has any, are lent to the build and are no part of the image. @returns its name */
export async function buildImage(buildah: Buildah): Promise<string> {
  const image = 'localhost/capstan';
  const settings = join(homedir(), '.npmrc');
  const lent = existsSync(settings) ? ['--volume', `${settings}:/root/.npmrc:ro`] : [];
  const from = ['--pull-never', '--build-arg', `NODE_IMAGE=${base}`, ...lent];
  await buildah.run(['bud', '--isolation', 'chroot', '--format', 'docker', ...from, '--tag', image, root]);
  return image;
}
