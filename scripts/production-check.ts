/**
 * `npm run production:check`: docs/production.md on this machine, with the commands and files of the page's own blocks.
 * The machines of the page are loopback addresses, its folders are below a temporary one. Each step prints a line;
 * commands that need a machine of their own are named with the check that was made instead.
 */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createTemporaryFolder } from '../src/dev/data-folder.ts';
import { createPrinter } from '../src/dev/progress.ts';
import { createSupervisor } from '../src/dev/supervisor/supervisor.ts';
import { findCacheDir, findTemporal } from '../src/dev/temporal/source.ts';
import { findClusterPrograms } from './cluster/programs.ts';
import { checkUnits } from './deploy/check-units.ts';
import { packTarball } from './package/pack.ts';
import { runCommand } from './package/run-command.ts';
import { addresses, createPage, password } from './production/page.ts';
import {
  checkPorts,
  query,
  startCapstan,
  startPostgres,
  startProxy,
  startTemporalNode,
  type Trial,
} from './production/parts.ts';

const { values } = parseArgs({ options: { tarball: { type: 'string' } } });
const checkout = fileURLToPath(new URL('..', import.meta.url));
const root = createTemporaryFolder('capstan-production-');
const printer = createPrinter(process.stderr);
const supervisor = createSupervisor({ report: printer.report, temporaryFolder: root });
const trial: Trial = { root, supervisor };
const page = createPage(root);
const work = join(root, 'work');
const certificate = join(root, 'etc/haproxy/capstan.crt');
const environment = {
  ...process.env,
  PATH: [join(root, 'usr/local/bin'), join(root, 'opt/temporal'), process.env.PATH].join(':'),
};
const client = { ...environment, NODE_EXTRA_CA_CERTS: certificate, CURL_CA_BUNDLE: certificate };

function shell(text: string, own: NodeJS.ProcessEnv = environment): Promise<string> {
  return runCommand(['bash', '-e', '-o', 'pipefail', '-c', text], { cwd: work, environment: own });
}

async function step<Result>(title: string, carryOut: () => Promise<Result>): Promise<Result> {
  const from = performance.now();
  const result = await carryOut().catch((error: Error) => {
    throw new Error(`FAILED  ${title}\n${error.message}`);
  });
  console.log(`ok  ${title}  ${((performance.now() - from) / 1000).toFixed(1)} s`);
  return result;
}

function skip(command: string, instead: string): void {
  console.log(`--  not run here: ${command}: ${instead}`);
}

async function install(): Promise<void> {
  for (const folder of [
    'opt/temporal',
    'etc/temporal',
    'etc/haproxy',
    'root',
    'srv',
    'usr/local/bin',
    'work',
  ]) {
    await mkdir(join(root, folder), { recursive: true });
  }
  const tarball = values.tarball ?? (await step('npm pack', () => packTarball(join(root, 'tarball'))));
  await symlink(tarball, join(work, 'capstan-0.1.0.tgz'));
  await step('Install: npm install of the tarball, links', () =>
    shell(page.lines('npm pack', /^(npm install|ln) /)),
  );
  await step('Install: folders', () => shell(page.lines('useradd', /^install /)));
  skip('groupadd, useradd, owners of folders', 'one user runs all processes');
  skip('docker, helm, kubectl', 'npm run image:check, npm run deploy:check');
}

async function prepareTemporal(): Promise<void> {
  const programs = await findClusterPrograms();
  const cacheDir = findCacheDir(process.env, homedir());
  const cli = await findTemporal({ cacheDir, environment: process.env }, () => undefined);
  const places = { server: programs.temporalServer, sql: programs.temporalSql, temporal: cli.path };
  for (const [name, path] of Object.entries(places)) await symlink(path, join(root, 'opt/temporal', name));
  skip('go install of Temporal', 'the same programs from the cache, which go install made');
  await step('Temporal 2: schema', () => shell(page.block('export SQL_PASSWORD')));
  const dynamic = page.block('history.transferProcessorMaxPollRPS');
  await writeFile(join(root, 'etc/temporal/dynamic.yaml'), dynamic);
  const settings = { ...environment, ...page.variables('/etc/temporal/temporal.env') };
  const [first = '', second = ''] = page.lines('namespace create', /--allow-no-auth start/).split('\n');
  const startNode = (line: string, address: string) =>
    startTemporalNode(trial, line, {
      ...settings,
      BIND_ON_IP: address,
      TEMPORAL_BROADCAST_ADDRESS: address,
      PUBLIC_FRONTEND_ADDRESS: `${address}:7233`,
    });
  await step('Temporal 4: the first node', () => startNode(first, addresses.nodes[0]));
  await step('Temporal 4: the namespace', () => shell(page.lines('namespace create', /namespace create/)));
  await step('Temporal 4: the second node', () => startNode(second, addresses.nodes[1]));
  await step('Temporal 5: HAProxy with TLS', async () => {
    const names = ['-subj', '/CN=capstan', '-addext', `subjectAltName=IP:${addresses.proxy}`];
    const files = ['-keyout', join(dirname(certificate), 'capstan.key'), '-out', certificate];
    const make = [
      'openssl',
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-days',
      '2',
      ...names,
      ...files,
    ];
    await runCommand(make, { cwd: work });
    await shell(`cd ${dirname(certificate)}; cat capstan.crt capstan.key > capstan.pem`);
    await startProxy(trial, programs.haproxy, page.block('global\n'));
  });
}

function settingsOf(name: 'server' | 'worker', address: string): NodeJS.ProcessEnv {
  const common = page.variables('/etc/capstan/capstan.env');
  const own = Object.entries(page.variables(`/etc/capstan/${name}.env`)).filter(
    ([variable]) => !variable.startsWith('OIDC_'),
  );
  return { ...environment, ...common, ...Object.fromEntries(own), HOST: address, METRICS_HOST: address };
}

async function startAll(): Promise<void> {
  await step('Media: the folder', () => shell(page.block('-m 2770')));
  const file = join(root, 'etc/capstan/capstan.env');
  await writeFile(file, page.block('DATABASE_URL=postgres://capstan'));
  await step('Schema and first key', () => shell(page.block('capstan migrate --env-file')));
  const units = await checkUnits(checkout);
  skip('systemctl', units);
  skip('OIDC_ISSUER and its kin', 'there is no OpenID provider here; npm test signs in at one');
  skip('DNS, sslmode=verify-full', 'addresses, and Postgres without TLS');
  for (const address of addresses.machines) {
    await step(`Start: server and worker on ${address}`, async () => {
      await startCapstan(trial, 'server', settingsOf('server', address));
      await startCapstan(trial, 'worker', settingsOf('worker', address));
    });
  }
}

async function checkAll(): Promise<void> {
  await step('the ports of the page are free', checkPorts);
  await install();
  await step('Postgres', () => startPostgres(trial));
  await step('Postgres: roles and databases', async () => {
    for (const statement of page.block('create role capstan').split(/;.*$/m)) await query(statement);
  });
  await prepareTemporal();
  await startAll();
  const keys = page.block('capstan keys create');
  await step('Keys: a key with fewer rights', () => shell(keys, client));
  const [login = ''] = keys.split('\n');
  const printed = await step('A first run', () => shell(`${login}\n${page.block('wait: 1s')}`, client));
  if (!printed.includes('succeeded')) throw new Error(`FAILED  the first run did not succeed:\n${printed}`);
  skip('the upgrade', 'npm run faults:migrations');
}

try {
  await checkAll();
  console.log('docs/production.md holds');
} catch (error) {
  console.error(error instanceof Error ? error.message.replaceAll(password, '…') : error);
  process.exitCode = 1;
} finally {
  await supervisor.stop();
  printer.close();
}
