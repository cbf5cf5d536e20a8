/** Direct calls on the API of a test, and instances registered with it. */
import type { ExecAnswer } from '@capstan/core/contracts/decision';
import type { Problem } from '@capstan/core/contracts/problem';
import type { TestApi } from './api.ts';
import type { Capstan } from './capstan.ts';
import { type Instance, type InstanceOptions, startInstance } from './fleet.ts';

export interface ExecOptions {
  readonly body?: object;
  readonly headers?: Record<string, string>;
}

export interface Executed {
  readonly status: number;
  readonly headers: Headers;
  /** The fields of a success or of a problem. */
  readonly body: Partial<ExecAnswer> & Partial<Problem>;
}

export async function execOn(
  api: TestApi,
  name: string,
  { body = { input: {} }, headers = {} }: ExecOptions = {},
): Promise<Executed> {
  const answer = await api.call(`/v1/capabilities/${name}/exec`, { body, headers });
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Executed['body'] };
}

/** Registers an instance that serves all projects; the router knows it when this resolves. */
export async function registerInstance(api: TestApi, options: InstanceOptions): Promise<Instance> {
  const request: Capstan['request'] = async (method, path, body) => {
    const answer = await api.call(path, { method, body });
    return { status: answer.status, headers: answer.headers, body: JSON.parse(await answer.text()) };
  };
  const instance = await startInstance({ request }, { shared_with: 'all', ...options });
  await api.waitForInstance(options.name, instance.endpoint);
  return instance;
}

/** A project with a daily limit, and the headers of its own key. */
export async function aLimitedProject(
  api: TestApi,
  daily_limit_usd: number,
): Promise<{ projectId: string; headers: Record<string, string> }> {
  const answer = await api.call('/v1/projects', { body: { name: 'limited', daily_limit_usd } });
  const { project_id } = (await answer.json()) as { project_id: string };
  const key = await api.createKey({ scopes: ['admin'], projects: [project_id] });
  return { projectId: project_id, headers: { authorization: `Bearer ${key}` } };
}
