/**
 * `npm run clients:check`: client libraries of Python and coding agents of npm, changed in nothing but address and key,
 * use a server with models on a provider that this script plays. They are installed into a temporary folder, from the
 * indexes that pip and npm are set up for. It prints the tables of docs/models.md. `-- agents` tries the agents alone.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Decision } from '@capstan/core/contracts/decision';
import { createTemporaryFolder } from '../src/dev/data-folder.ts';
import { choosePort } from '../src/dev/ports.ts';
import { createPrinter } from '../src/dev/progress.ts';
import { createSupervisor } from '../src/dev/supervisor/supervisor.ts';
import { type ModelReply, type ModelRequest, startModelServer } from '../test/support/model-server.ts';
import { createServedModels } from '../test/support/served-models.ts';
import { waitFor } from '../test/support/wait.ts';
import { type AgentFinding, agentPackages, installAgents, tryAgents } from './clients/agents.ts';
import { startBacking } from './package/backing.ts';
import { runCommand } from './package/run-command.ts';

const packages = ['openai==3.57.0', 'langchain-openai==1.7.4', 'llm==0.36'];
const checkout = join(import.meta.dirname, '..');
const root = createTemporaryFolder('capstan clients ');
const printer = createPrinter(process.stdout);
const supervisor = createSupervisor({ report: printer.report, temporaryFolder: root });

interface Finding {
  readonly client: string;
  readonly feature: string;
  /** Null: it works. */
  readonly fault: string | null;
}

interface Served {
  readonly url: string;
  readonly apiKey: string;
}

/** @returns the program of an environment that has the packages @throws Error that names the missing part */
async function installClients(): Promise<string> {
  const folder = join(root, 'venv');
  const explain = (words: string) => (error: unknown) => {
    throw new Error(words, { cause: error });
  };
  await runCommand(['python3', '-m', 'venv', folder], { cwd: root }).catch(
    explain('this check needs Python 3 with venv on the PATH (python3 -m venv)'),
  );
  const python = join(folder, 'bin', 'python');
  await runCommand([python, '-m', 'pip', 'install', '--quiet', ...packages], { cwd: root }).catch(
    explain(`pip could not install ${packages.join(', ')}: is the package index in reach?`),
  );
  return python;
}

function askedText({ body }: ModelRequest): string {
  return JSON.stringify(body.messages ?? []); // of embeddings there are none
}

function reply(request: ModelRequest): ModelReply {
  if (request.path.endsWith('/embeddings')) return { vectors: (text) => [text.length, 0.5], tokens: 7 };
  const asked = askedText(request);
  if (asked.includes('hang')) return 'hang';
  if (asked.includes('image_url')) return { text: 'I see a picture' };
  if (request.body.messages.some(({ role }) => role === 'tool')) return { text: 'Rain in Oslo' };
  if (request.body.tools === undefined) return { text: 'Hello, world' };
  const call = { id: 'call_1', name: 'weather', arguments: '{"place":"Oslo"}' };
  return { text: '', toolCalls: [call], finish: 'tool_calls' };
}

async function startServer(): Promise<Served> {
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

function toTable(findings: readonly Finding[]): string {
  const features = [...new Set(findings.map(({ feature }) => feature))];
  const clients = [...new Set(findings.map(({ client }) => client))];
  const cell = (client: string, feature: string): string => {
    const found = findings.find((one) => one.client === client && one.feature === feature);
    if (found === undefined) return '?';
    if (found.fault === null) return 'works';
    return found.fault === 'not offered' ? '–' : '**fails**';
  };
  const rows = clients.map((client) => [client, ...features.map((feature) => cell(client, feature))]);
  const lines = [['client', ...features], features.concat('').map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

async function waitForCandidate(
  { url, apiKey }: Served,
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

/** Both protocols of agents on both of providers: two of the four ways are translated. */
async function checkAgents({ url, apiKey }: Served): Promise<readonly AgentFinding[]> {
  const programs = await installAgents(join(root, 'agents')).catch((error: Error) => {
    console.error(`NOT checked, because npm could not install them: ${agentPackages.join(', ')}`);
    console.error(error.message);
    return null;
  });
  if (programs === null) return [];
  const provider = await startModelServer();
  const waitForInstance = (capability: string, endpoint: string): Promise<void> =>
    waitForCandidate({ url, apiKey }, capability, endpoint);
  const models = createServedModels({ url, apiKey, waitForInstance }, provider);
  const findings: AgentFinding[] = [];
  try {
    for (const kind of ['openai', 'anthropic'] as const) {
      await models.start(`model.${kind}`, { kind });
      const trial = { programs, folder: root, url, apiKey, model: `model.${kind}`, provider: kind };
      findings.push(...(await tryAgents({ ...trial, answer: provider.answer })));
    }
    return findings;
  } finally {
    await models.stop();
    await provider.close();
  }
}

async function checkClients({ url, apiKey }: Served): Promise<readonly Finding[]> {
  const python = await installClients();
  const provider = await startModelServer();
  provider.answer(reply);
  const waitForInstance = (capability: string, endpoint: string): Promise<void> =>
    waitForCandidate({ url, apiKey }, capability, endpoint);
  const models = createServedModels({ url, apiKey, waitForInstance }, provider);
  try {
    for (const name of ['model.fast', 'embed.small']) await models.start(name);
    const environment = { PATH: process.env.PATH, CAPSTAN_BASE: `${url}/openai/v1`, CAPSTAN_KEY: apiKey };
    const findings: Finding[] = [];
    for (const name of packages.map((pinned) => pinned.split('==')[0] ?? '')) {
      const script = join(import.meta.dirname, 'clients', 'check.py');
      const printed = await runCommand([python, script, name], { cwd: root, environment });
      const lines = printed.split('\n').filter((line) => line.startsWith('{"client"'));
      findings.push(...lines.map((line) => JSON.parse(line) as Finding));
    }
    const hung = provider.requests.filter((request) => askedText(request).includes('hang'));
    await waitFor('the provider to see that clients have gone', () => hung.every((one) => one.isAborted));
    return findings;
  } finally {
    await models.stop();
    await provider.close();
  }
}

function toAgentTable(findings: readonly AgentFinding[]): string {
  const rows = findings.map(({ agent, provider, fault }) => [
    agent,
    provider,
    fault === null ? 'works' : '**fails**',
  ]);
  return [['agent', 'provider', 'a file and a command'], ['---', '---', '---'], ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

try {
  const served = await startServer();
  const findings = process.argv[2] === 'agents' ? [] : await checkClients(served);
  const agents = await checkAgents(served);
  if (findings.length > 0) console.log(toTable(findings));
  if (agents.length > 0) console.log(toAgentTable(agents));
  const faults = findings.filter(({ fault }) => fault !== null && fault !== 'not offered');
  for (const { client, feature, fault } of faults) console.error(`${client}, ${feature}: ${fault}`);
  const broken = agents.filter(({ fault }) => fault !== null);
  for (const { agent, provider, fault } of broken) console.error(`${agent} on ${provider}: ${fault}`);
  if (faults.length + broken.length > 0) process.exitCode = 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  if (error instanceof Error && error.cause instanceof Error) console.error(error.cause.message);
  process.exitCode = 1;
} finally {
  await supervisor.stop();
  printer.close();
}
