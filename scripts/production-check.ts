/**
 * `npm run production:check`: docs/production.md on this machine, with the commands and files of the page's own blocks.
 * The machines of the page are loopback addresses, its folders are below a temporary one. Each step prints a line;
 * commands that need a machine of their own are named with the check that was made instead.
 */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
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
  startCapability,
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
const certificate = join(work, 'fullchain.pem');
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

async function installCapstan(): Promise<void> {
  const tarball = values.tarball ?? (await step('npm pack', () => packTarball(join(root, 'tarball'))));
  await symlink(tarball, join(work, 'capstan-0.1.0.tgz'));
  await step('The package: npm install of the tarball, links', () =>
    shell(page.block('ln -sfn /opt/capstan-0.1.0')),
  );
  await step('User and folders: the folders', () => shell(page.lines('groupadd', /^install /)));
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
  await step("Temporal's schema", () => shell(page.block('export SQL_PASSWORD')));
  const dynamic = page.block('history.transferProcessorMaxPollRPS');
  await writeFile(join(root, 'etc/temporal/dynamic.yaml'), dynamic);
  const settings = { ...environment, ...page.variables('/etc/temporal/temporal.env') };
  const command = page.execStart('Description=Temporal');
  const startNode = (address: string) =>
    startTemporalNode(trial, command, {
      ...settings,
      BIND_ON_IP: address,
      TEMPORAL_BROADCAST_ADDRESS: address,
      PUBLIC_FRONTEND_ADDRESS: `${address}:7233`,
    });
  const [first, second] = addresses.nodes;
  await step('the first node', () => startNode(first));
  await step('its health, the namespace', () =>
    shell(page.lines('namespace create', new RegExp(`^\\S+temporal .*${first}`))),
  );
  await step('the second node', () => startNode(second));
  await step('HAProxy with TLS', () => startWithCertificate(programs.haproxy));
  await step('health of Temporal through the proxy', () =>
    shell(page.lines('haproxy -c -f', /^\S+temporal /)),
  );
}

async function startWithCertificate(haproxy: string): Promise<void> {
  const names = ['-subj', '/CN=capstan', '-addext', `subjectAltName=IP:${addresses.proxy}`];
  const files = ['-keyout', join(work, 'privkey.pem'), '-out', certificate];
  const make = ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...names, ...files];
  await runCommand(make, { cwd: work });
  await shell(page.block('cat fullchain.pem privkey.pem'));
  await startProxy(trial, haproxy, page.block('global\n'));
}

function settingsOf(name: 'server' | 'worker', address: string): NodeJS.ProcessEnv {
  const common = page.variables('/etc/capstan/capstan.env');
  const own = page.variables(`/etc/capstan/${name}.env`);
  return { ...environment, ...common, ...own, HOST: address, METRICS_HOST: address };
}

async function startAll(): Promise<void> {
  await step('Media: the folder', () => shell(page.block('-m 2770')));
  const file = join(root, 'etc/capstan/capstan.env');
  await writeFile(file, page.block('DATABASE_URL=postgres://capstan'));
  await step('Schema and first key', () => shell(page.block('capstan migrate --env-file')));
  const units = await checkUnits(checkout);
  skip('systemctl', units);
  skip('the OpenID provider', 'npm test signs in at one');
  skip('DNS, sslmode=verify-full', 'addresses, and Postgres without TLS');
  for (const address of addresses.machines) {
    await step(`a server and a worker on ${address}`, async () => {
      await startCapstan(trial, 'server', settingsOf('server', address));
      await startCapstan(trial, 'worker', settingsOf('worker', address));
    });
  }
}

/** Runs the blocks of a section with the variables of its first command. */
async function expectPrinted(title: string, text: string, part: string): Promise<string> {
  return step(title, async () => {
    const printed = await shell(text, client);
    if (!printed.includes(part)) throw new Error(`no "${part}" in what was printed:\n${printed}`);
    return printed;
  });
}

async function useCluster(): Promise<void> {
  await step('Check the cluster: readiness', () => shell(page.lines('/readyz  ', /^curl /), client));
  await writeFile(join(work, 'check.yaml'), page.block('pipeline: check'));
  const run = page.block('capstan run check.yaml');
  const [login = ''] = run.split('\n');
  await expectPrinted('Check the cluster: a run', run, 'succeeded');
  const keys = await expectPrinted('Keys', `${login}\n${page.block('capstan keys create')}`, 'cap_live_');
  const token = keys.match(/cap_live_\w+/g)?.at(-1);
  await step('Capabilities: the files', () => shell(page.block('capstan init')));
  const settings = { ...page.variables('/etc/capstan/capability-shout.env'), ROUTER_TOKEN: token };
  const command = page.execStart('Description=Capability').replaceAll('%i', 'shout');
  await step('Capabilities: an instance', () => startCapability(trial, command, { ...client, ...settings }));
  await expectPrinted('Capabilities: a call', `${login}\n${page.block('capstan exec shout')}`, 'HELLO');
}

async function checkAll(): Promise<void> {
  await step('the ports of the page are free', checkPorts);
  for (const folder of [
    'etc/temporal',
    'etc/haproxy',
    'opt/temporal',
    'root',
    'srv',
    'usr/local/bin',
    'work',
  ])
    await mkdir(join(root, folder), { recursive: true });
  await step('Postgres', () => startPostgres(trial));
  await step('Postgres: roles and databases', async () => {
    for (const statement of page.block('create role capstan').split(/;.*$/m)) await query(statement);
  });
  await prepareTemporal();
  await installCapstan();
  await startAll();
  await useCluster();
  skip('the upgrade', 'npm run faults -- migrations');
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
