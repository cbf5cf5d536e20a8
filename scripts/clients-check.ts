/**
 * `npm run clients:check`: client libraries and coding agents, changed in nothing but address and key, use a server with
 * models on a provider that this script plays, once of each kind: one of the two translates. They are installed into the
 * cache, from the indexes that pip and npm are set up for. It prints the table of docs/models.md and a count.
 * `-- WORD` takes those alone whose name contains it.
 */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Decision } from '@capstan/core/contracts/decision';
import { createTemporaryFolder } from '../src/dev/data-folder.ts';
import { choosePort } from '../src/dev/ports.ts';
import { createPrinter } from '../src/dev/progress.ts';
import { createSupervisor } from '../src/dev/supervisor/supervisor.ts';
import { type ModelServer, startModelServer } from '../test/support/model-server.ts';
import { createServedModels } from '../test/support/served-models.ts';
import { waitFor } from '../test/support/wait.ts';
import { installAgents, useAgent } from './clients/agents.ts';
import type { Finding, Served } from './clients/clients.ts';
import { installLibraries, useLibrary } from './clients/libraries.ts';
import { answerClient } from './clients/provider.ts';
import { type ProviderFinding, toCount, toTable } from './clients/table.ts';
import { startBacking } from './package/backing.ts';
import { runCommand } from './package/run-command.ts';

const checkout = join(import.meta.dirname, '..');
const root = createTemporaryFolder('capstan clients ');
const printer = createPrinter(process.stdout);
const supervisor = createSupervisor({ report: printer.report, temporaryFolder: root });
const kinds = ['openai', 'anthropic'] as const;

type Server = Omit<Served, 'model'>;

async function startServer(): Promise<Server> {
  const backing = await startBacking(supervisor, root, printer.report);
  const port = await choosePort([]);
  const keyFile = join(root, 'api-key');
  const logFile = join(root, 'server.log');
  const program = join(checkout, 'bin', 'capstan.mjs');
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    DATABASE_URL: backing.databaseUrl,
    TEMPORAL_ADDRESS: backing.temporalAddress,
    MEDIA_URL: pathToFileURL(join(root, 'media')).href,
    PORT: String(port),
  };
  await runCommand([process.execPath, program, 'migrate', '--api-key-file', keyFile], {
    cwd: checkout,
    environment: env,
  });
  await supervisor.start({
    name: 'server',
    command: process.execPath,
    args: [program, 'server'],
    cwd: checkout,
    env,
    account: null,
    logFile,
    stopSignal: 'SIGTERM',
    stopGraceMs: 40_000,
    readyTimeoutMs: 120_000,
    isReady: async () => (await readFile(logFile, 'utf8')).includes('server is ready'),
  });
  return { url: `http://127.0.0.1:${port}`, apiKey: (await readFile(keyFile, 'utf8')).trim() };
}

async function waitForCandidate(
  { url, apiKey }: Server,
  capability: string,
  endpoint: string,
): Promise<void> {
  await waitFor('the router to know it', async () => {
    const answer = await fetch(`${url}/v1/route`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ capability }),
    });
    const { candidates = [] } = (await answer.json()) as Partial<Decision>;
    return candidates.some((candidate) => candidate.endpoint === endpoint);
  });
}

type Use = (served: Served, folder: string) => Promise<readonly Finding[]>;

async function installClients(word: string): Promise<readonly Use[]> {
  const libraries = await installLibraries(join(root, 'scripts'), word);
  const agents = await installAgents(word);
  return [
    ...libraries.map(
      (library): Use =>
        (served, folder) =>
          useLibrary(library, served, folder),
    ),
    ...agents.map(
      (agent): Use =>
        (served, folder) =>
          useAgent(agent, served, folder),
    ),
  ];
}

async function useAll(uses: readonly Use[], server: Server): Promise<readonly ProviderFinding[]> {
  const findings: ProviderFinding[] = [];
  for (const [index, use] of uses.entries()) {
    for (const provider of kinds) {
      const folder = join(root, `${index} ${provider}`);
      await mkdir(folder, { recursive: true });
      const found = await use({ ...server, model: `model.${provider}` }, folder);
      findings.push(...found.map((finding) => ({ ...finding, provider })));
      for (const { client, feature, fault } of found) {
        if (fault !== null) console.error(`${client} on ${provider}, ${feature}: ${fault}`);
      }
    }
  }
  return findings;
}

/** @throws Error when the provider continues for a client that has gone */
async function requireGone({ requests }: ModelServer): Promise<void> {
  const hung = requests.filter((request) => answerClient(request) === 'hang');
  await waitFor('the provider to see that clients have gone', () => hung.every((one) => one.isAborted));
}

async function checkClients(uses: readonly Use[], server: Server): Promise<readonly ProviderFinding[]> {
  const provider = await startModelServer(answerClient);
  const waitForInstance = (capability: string, endpoint: string): Promise<void> =>
    waitForCandidate(server, capability, endpoint);
  const models = createServedModels({ ...server, waitForInstance }, provider);
  try {
    for (const kind of kinds) await models.start(`model.${kind}`, { kind });
    await models.start('embed.small');
    const findings = await useAll(uses, server);
    await requireGone(provider);
    return findings;
  } finally {
    await models.stop();
    await provider.close();
  }
}

try {
  const uses = await installClients(process.argv[2] ?? '');
  if (uses.length === 0) throw new Error(`the name of no client contains ${process.argv[2]}`);
  const findings = await checkClients(uses, await startServer());
  console.log(toTable(findings, kinds));
  console.log(toCount(findings));
  if (findings.some(({ fault }) => fault !== null)) process.exitCode = 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  if (error instanceof Error && error.cause instanceof Error) console.error(error.cause.message);
  process.exitCode = 1;
} finally {
  await supervisor.stop();
  printer.close();
}
