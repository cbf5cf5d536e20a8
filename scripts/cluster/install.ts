/** Capstan for the cluster: the packed package, installed as an operator would, and its first key. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { s3PackageNames } from '@capstan/media-store/s3-bucket';
import type { PartReport } from '../../src/dev/progress.ts';
import { installedProgram, installTarball, packTarball } from '../package/pack.ts';
import { runCommand } from '../package/run-command.ts';

async function readVersions(installation: string): Promise<Readonly<Record<string, string>>> {
  const text = await readFile(join(installation, 'node_modules/capstan/package.json'), 'utf8');
  return JSON.parse(text).optionalDependencies;
}

/** @returns where it is installed */
export async function installCapstan(folder: string, report: PartReport, given?: string): Promise<string> {
  const installation = join(folder, 'capstan');
  report('working', 'packing this checkout');
  const tarball = given ?? (await packTarball(join(folder, 'tarball')));
  report('working', 'installing it without its optional parts');
  await installTarball(tarball, installation, ['--omit=optional']);
  const versions = await readVersions(installation);
  const wanted = s3PackageNames.map((name) => `${name}@${versions[name]}`);
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error', '--omit=optional'];
  await runCommand(['npm', 'install', ...quiet, ...wanted], { cwd: installation });
  report('ready', 'packed, installed, with the packages for S3');
  return installation;
}

/** Schema, first key, search attributes: by the commands of the package. */
export async function prepareAccess(installation: string, environment: NodeJS.ProcessEnv, folder: string) {
  const program = [process.execPath, installedProgram(installation)];
  const options = { cwd: installation, environment };
  const keyFile = join(folder, 'api-key');
  await runCommand([...program, 'migrate', '--api-key-file', keyFile], options);
  await runCommand([...program, 'doctor', '--fix'], options);
  return { key: (await readFile(keyFile, 'utf8')).trim() };
}
