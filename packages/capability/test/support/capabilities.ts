import { z } from 'zod';
import {
  type Capability,
  type CapabilityDefinition,
  defineCapability,
  type ExecContext,
  readSettings,
} from '../../src/index.ts';
import {
  type InstanceOptions,
  type RunningInstance,
  startInstance,
} from '../../src/lifecycle/start-instance.ts';

const Text = z.object({ text: z.string() });

/** Answers its input, unless `exec` overrides that. */
export function anEcho(
  exec: (input: { text: string }, context: ExecContext) => Promise<{ text: string }> = async (input) => input,
  more: Partial<CapabilityDefinition> = {},
): Capability {
  return defineCapability({
    name: 'echo',
    version: '1.2.3',
    description: 'Answers its input.',
    cost_model: { type: 'per_call', rate_usd: 0.01, notes: 'a cent' },
    tags: ['test'],
    ...more,
    input: Text,
    output: Text,
    exec,
  });
}

/** Serves on any free port, without a router unless `env` names one. */
export async function serve(
  capability: Capability,
  env: Record<string, string> = {},
  options: Partial<InstanceOptions> = {},
): Promise<RunningInstance> {
  return startInstance(capability, {
    settings: readSettings({ PORT: '0', ...env }),
    print: () => {},
    ...options,
  });
}

export function post(
  url: string,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });
}

export interface CapabilityAnswer {
  readonly ok: boolean;
  readonly output?: unknown;
  readonly error?: string;
}

/** Parsed as whatever the test expects it to be. */
export async function readJson<Body>(response: Promise<Response>): Promise<{ status: number; body: Body }> {
  const { status, body } = await response.then(async (given) => ({
    status: given.status,
    body: await given.json(),
  }));
  return { status, body: body as Body };
}

/** The answer of a call of `/exec`. */
export function exec(
  instance: RunningInstance,
  input: unknown,
): Promise<{ status: number; body: CapabilityAnswer }> {
  return readJson(post(`${instance.endpoint}/exec`, JSON.stringify(input)));
}
