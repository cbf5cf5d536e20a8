/**
 * Coding agents, changed in nothing but address and key. Each edits a file in its first turn, and runs a command over it
 * in its second, for which it continues the conversation. The files show whether the tools did what the model asked for.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../package/run-command.ts';
import { ensureNodePackages, ensurePythonEnvironment } from '../tools/ensure-program.ts';
import { agentPackages, aiderPackage, type Finding, type Served } from './clients.ts';

const before = 'Hello from Capstan\n';
const after = 'Grüße from Capstan\n';
const edit = { old: 'Hello', new: 'Grüße' };
const copy = 'cp note.txt copy.txt';
const end = 'The note is copied.';

function say(text: string): string {
  return `SAY ${JSON.stringify(text)}`;
}

function call(name: string, input: object): string {
  return `CALL ${name} ${JSON.stringify(input)}`;
}

/** Where an agent works. */
interface Desk extends Served {
  readonly folder: string;
  readonly home: string;
}

interface Agent {
  readonly name: string;
  /** @returns the program of its package, installed when needed, with the words before all others */
  install(): Promise<readonly string[]>;
  /** Files below its home, by path. */
  files(desk: Desk): Readonly<Record<string, string>>;
  environment(desk: Desk): NodeJS.ProcessEnv;
  /** The words of each turn. */
  turns(desk: Desk): readonly (readonly string[])[];
}

async function installOne(name: keyof typeof agentPackages): Promise<readonly string[]> {
  const folder = await ensureNodePackages(name, [agentPackages[name]]);
  return [join(folder, 'node_modules', '.bin', name)];
}

function nameOf(requirement: string): string {
  return requirement.replace(/(?:==|@)(?=[^@=]*$)/, ' ');
}

/** The lines of docs/models.md. */
const codex: Agent = {
  name: `Codex CLI, ${nameOf(agentPackages.codex)}`,
  install: () => installOne('codex'),
  files: ({ model, url }) => ({
    '.codex/config.toml': `
model = "${model}"
model_provider = "capstan"

[model_providers.capstan]
name = "Capstan"
base_url = "${url}/openai/v1"
wire_api = "responses"
env_key = "CAPSTAN_KEY"
`,
  }),
  environment: ({ apiKey }) => ({ CAPSTAN_KEY: apiKey }),
  turns: () => {
    const patch = `*** Begin Patch\n*** Update File: note.txt\n@@\n-${before}+${after}*** End Patch`;
    const exec = (cmd: string): string => call('exec_command', { cmd });
    const options = ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
    return [
      ['exec', ...options, `${exec(`apply_patch <<'EOF'\n${patch}\nEOF`)}\n${say('Edited.')}`],
      ['exec', 'resume', '--last', ...options, `${exec(copy)}\n${say(end)}`],
    ];
  },
};

const claude: Agent = {
  name: `Claude Code, ${nameOf(agentPackages.claude)}`,
  install: () => installOne('claude'),
  files: () => ({}),
  environment: ({ model, url, apiKey }) => ({
    ANTHROPIC_BASE_URL: `${url}/anthropic`,
    ANTHROPIC_AUTH_TOKEN: apiKey,
    ANTHROPIC_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  }),
  turns: ({ folder }) => {
    const file_path = join(folder, 'note.txt');
    const edited = call('Edit', { file_path, old_string: edit.old, new_string: edit.new });
    const ran = call('Bash', { command: copy, description: 'Copy the note' });
    const allowed = ['--allowedTools', 'Read,Edit,Bash'];
    return [
      ['-p', [call('Read', { file_path }), edited, say('Edited.')].join('\n'), ...allowed],
      ['-p', `${ran}\n${say(end)}`, '--continue', ...allowed],
    ];
  },
};

const opencode: Agent = {
  name: `opencode, ${nameOf(agentPackages.opencode)}`,
  install: () => installOne('opencode'),
  files: ({ model, url }) => ({
    '.config/opencode/opencode.json': JSON.stringify({
      autoupdate: false,
      share: 'disabled',
      model: `capstan/${model}`,
      small_model: `capstan/${model}`,
      provider: {
        capstan: {
          npm: '@ai-sdk/openai-compatible',
          options: { baseURL: `${url}/openai/v1`, apiKey: '{env:CAPSTAN_KEY}' },
          models: { [model]: {} },
        },
      },
    }),
  }),
  environment: ({ apiKey }) => ({ CAPSTAN_KEY: apiKey, OPENCODE_DISABLE_MODELS_FETCH: '1' }),
  turns: ({ folder }) => {
    const filePath = join(folder, 'note.txt');
    const edited = call('edit', { filePath, oldString: edit.old, newString: edit.new });
    const ran = call('bash', { command: copy, description: 'Copy the note' });
    // It puts quotes around a word with a space, and spaces between words.
    const task = (text: string): readonly string[] => text.split(' ');
    return [
      ['run', ...task([call('read', { filePath }), edited, say('Edited.')].join('\n'))],
      ['run', '--continue', ...task(`${ran}\n${say(end)}`)],
    ];
  },
};

/** It has no tools: the answer is the file, and the failed test goes back to the model as the second turn. */
const aider: Agent = {
  name: `aider, ${nameOf(aiderPackage)}`,
  install: async () => [await ensurePythonEnvironment(aiderPackage), '-m', 'aider'],
  files: () => ({}),
  environment: ({ url, apiKey }) => ({
    OPENAI_API_BASE: `${url}/openai/v1`,
    OPENAI_API_KEY: apiKey,
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
    HF_HUB_OFFLINE: '1',
  }),
  turns: ({ model }) => {
    const write = (text: string): string => say(`${end}\n\nnote.txt\n\`\`\`\n${text}\`\`\`\n`);
    const test = `${copy} && grep -q Grüße note.txt`;
    const own = ['--model', `openai/${model}`, '--test-cmd', test, '--auto-test', '--edit-format', 'whole'];
    const quiet = ['--no-git', '--no-check-update', '--no-show-model-warnings', '--analytics-disable'];
    // It writes answers of its own into the conversation, so the second turn is not the second answer.
    const task = [write('Hello again\n'), ...Array.from({ length: 8 }, () => write(after))].join('\n');
    return [['note.txt', '--yes-always', ...own, ...quiet, '--message', task]];
  },
};

const agents: readonly Agent[] = [codex, claude, opencode, aider];

interface InstalledAgent {
  readonly agent: Agent;
  readonly command: readonly string[];
}

/** @returns the agents with the word in their names @throws Error of what cannot be installed */
export async function installAgents(word: string): Promise<readonly InstalledAgent[]> {
  const installed: InstalledAgent[] = [];
  for (const agent of agents.filter(({ name }) => name.toLowerCase().includes(word))) {
    installed.push({ agent, command: await agent.install() });
  }
  return installed;
}

async function work({ agent, command }: InstalledAgent, desk: Desk): Promise<string | null> {
  const { folder, home } = desk;
  const environment = { PATH: process.env.PATH, HOME: home, ...agent.environment(desk) };
  let printed = '';
  for (const words of agent.turns(desk)) {
    printed = await runCommand([...command, ...words], { cwd: folder, environment, timeoutMs: 180_000 });
  }
  const note = await readFile(join(folder, 'note.txt'), 'utf8');
  const copied = await readFile(join(folder, 'copy.txt'), 'utf8').catch(() => 'missing');
  if (note !== after) return `note.txt is ${JSON.stringify(note)}: ${printed.trim()}`;
  if (copied !== after) return `copy.txt is ${JSON.stringify(copied)}: ${printed.trim()}`;
  return printed.includes(end) ? null : `the last answer is missing: ${printed.trim()}`;
}

/** @param folder a new one */
export async function useAgent(
  installed: InstalledAgent,
  served: Served,
  folder: string,
): Promise<readonly Finding[]> {
  const { agent } = installed;
  const desk: Desk = { ...served, folder, home: join(folder, 'home') };
  const files = Object.entries(agent.files(desk));
  for (const [path, text] of [['../note.txt', before], ...files] as const) {
    await mkdir(join(desk.home, path, '..'), { recursive: true });
    await writeFile(join(desk.home, path), text);
  }
  const fault = await work(installed, desk).catch((error: Error) => error.message);
  return [{ client: agent.name, feature: 'edits a file, runs a command', fault }];
}
