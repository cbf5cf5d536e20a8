/**
 * Coding agents from npm, changed in nothing but address and key. In a folder of its own, each writes a file and runs
 * a command, as a scripted provider asks, which answers first by one tool, then by another, then by a text.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelReply, ModelRequest } from '../../test/support/model-server.ts';
import { runCommand } from '../package/run-command.ts';

interface Agent {
  readonly program: string;
  readonly package: string;
  readonly version: string;
  readonly words: readonly string[];
  /** The text of `~/.codex/config.toml`; other programs do not read it. */
  configuration(model: string, url: string): string;
  environment(model: string, url: string, apiKey: string): NodeJS.ProcessEnv;
}

const task = 'Write note.txt, then count its bytes.';
const patch = '*** Begin Patch\n*** Add File: note.txt\n+Grüße from Capstan\n*** End Patch';

/** The lines of docs/models.md. */
const agents: readonly Agent[] = [
  {
    program: 'codex',
    package: '@openai/codex',
    version: '0.171.0',
    words: ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', task],
    configuration: (model, url) => `
model = "${model}"
model_provider = "capstan"

[model_providers.capstan]
name = "Capstan"
base_url = "${url}/openai/v1"
wire_api = "responses"
env_key = "CAPSTAN_KEY"
`,
    environment: (_model, _url, apiKey) => ({ CAPSTAN_KEY: apiKey }),
  },
  {
    program: 'claude',
    package: '@anthropic-ai/claude-code',
    version: '2.1.332',
    words: ['-p', task, '--allowedTools', 'Write,Bash'],
    configuration: () => '',
    environment: (model, url, apiKey) => ({
      ANTHROPIC_BASE_URL: `${url}/anthropic`,
      ANTHROPIC_AUTH_TOKEN: apiKey,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    }),
  },
];

export const agentPackages = agents.map((agent) => `${agent.package}@${agent.version}`);

interface Tool {
  readonly name?: string;
  readonly function?: { readonly name: string };
}

/** The calls that an agent makes by the tools that it has: a file first, then a command. */
function callsFor(tools: ReadonlySet<string>, folder: string): readonly (readonly [string, object])[] {
  const command = 'wc -c < note.txt > size.txt';
  if (tools.has('Write')) {
    const file = { file_path: join(folder, 'note.txt'), content: 'Grüße from Capstan\n' };
    return [
      ['Write', file],
      ['Bash', { command, description: 'Count the bytes' }],
    ];
  }
  const run = (line: string): readonly [string, object] =>
    tools.has('exec_command') ? ['exec_command', { cmd: line }] : ['shell_command', { command: line }];
  const edit = `apply_patch <<'EOF'\n${patch}\nEOF`;
  return [tools.has('apply_patch') ? ['apply_patch', { input: patch }] : run(edit), run(command)];
}

function countResults({ messages }: ModelRequest['body']): number {
  const blocks = messages.flatMap(({ role, content }) => {
    if (role === 'tool') return ['tool_result'];
    return Array.isArray(content) ? (content as { readonly type: string }[]).map(({ type }) => type) : [];
  });
  return blocks.filter((type) => type === 'tool_result').length;
}

/** @param folder in which the agent works */
function answerAgent(folder: string): (request: ModelRequest) => ModelReply {
  return ({ body }) => {
    const tools = (body.tools ?? []) as readonly Tool[];
    const names = new Set(tools.map(({ name, function: declared }) => declared?.name ?? name ?? ''));
    const next = names.size === 0 ? undefined : callsFor(names, folder)[countResults(body)];
    if (next === undefined) return { text: 'The note is written.' };
    const [name, input] = next;
    const call = { id: `call_${countResults(body) + 1}`, name, arguments: JSON.stringify(input) };
    return { text: '', toolCalls: [call], finish: 'tool_calls' };
  };
}

/** Installs the agents into a folder. @returns the folder of their programs */
export async function installAgents(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  await runCommand(['npm', 'install', '--no-audit', '--no-fund', '--prefix', folder, ...agentPackages], {
    cwd: folder,
  });
  return join(folder, 'node_modules', '.bin');
}

export interface AgentFinding {
  readonly agent: string;
  readonly provider: string;
  /** Null: it works. */
  readonly fault: string | null;
}

interface Trial {
  readonly programs: string;
  readonly folder: string;
  readonly url: string;
  readonly apiKey: string;
  readonly model: string;
  readonly provider: string;
  answer(script: (request: ModelRequest) => ModelReply): void;
}

async function tryAgent(agent: Agent, trial: Trial): Promise<string | null> {
  const folder = join(trial.folder, `${agent.program} ${trial.provider}`);
  const home = join(folder, 'home');
  await mkdir(join(home, '.codex'), { recursive: true });
  await writeFile(join(home, '.codex', 'config.toml'), agent.configuration(trial.model, trial.url));
  trial.answer(answerAgent(folder));
  const environment = {
    PATH: process.env.PATH,
    HOME: home,
    ...agent.environment(trial.model, trial.url, trial.apiKey),
  };
  const command = [join(trial.programs, agent.program), ...agent.words];
  try {
    const printed = await runCommand(command, { cwd: folder, environment, timeoutMs: 180_000 });
    const size = await readFile(join(folder, 'size.txt'), 'utf8').catch(() => 'no file');
    if (size.trim() !== '21') return `size.txt has ${size.trim()} instead of 21: ${printed.trim()}`;
    return printed.includes('The note is written.') ? null : `the last answer is missing: ${printed.trim()}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Each agent in turn, on one model. */
export async function tryAgents(trial: Trial): Promise<readonly AgentFinding[]> {
  const findings: AgentFinding[] = [];
  for (const agent of agents) {
    const fault = await tryAgent(agent, trial);
    findings.push({ agent: `${agent.package} ${agent.version}`, provider: trial.provider, fault });
  }
  return findings;
}
