/** Something of every kind for generated requests to name, and an instance that answers what it is sent. */
import { readJson, type TestApi } from '../../support/api.ts';
import { registerInstance } from '../../support/direct-calls.ts';
import type { Instance } from '../../support/fleet.ts';
import type { KnownPaths } from './requests.ts';
import type { KnownFields } from './schema-values.ts';

export interface Things {
  readonly fields: KnownFields;
  readonly paths: KnownPaths;
  close(): Promise<void>;
}

const definition = {
  pipeline: 'greet',
  version: '1',
  steps: [{ id: 'hello', capability: 'probe', input: { text: '{{ job.text }}' } }],
};

async function createIds(api: TestApi): Promise<Readonly<Record<string, readonly string[]>>> {
  const ask = async (path: string, body: unknown, method = 'POST'): Promise<Record<string, string>> => {
    const [status, answer] = await readJson<Record<string, string>>(api.call(path, { method, body }));
    if (status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(answer)}`);
    return answer;
  };
  await ask('/v1/pipelines', definition);
  const job = await ask('/v1/jobs', { job: { text: 'hello' } });
  await api.call(`/v1/media/${job.job_id}/a.txt`, { method: 'PUT', body: 'hello' });
  const runs = [];
  for (const text of ['a', 'b', 'c']) runs.push(await ask('/v1/runs', { pipeline: 'greet', job: { text } }));
  const schedule = await ask('/v1/schedules', { name: 'daily', pipeline: 'greet', cron: '@daily', job: {} });
  const pattern = { job_type: 'probe', repo_signals: ['local'] };
  const secret = 'a-secret-of-a-program';
  await ask('/v1/hooks', { name: 'greet', pipeline: 'greet', signature: 'bearer', secret });
  const delivery = await api.call(`/v1/hooks/greet?project_id=${api.projectId}`, {
    body: { text: 'hello' },
    headers: { authorization: `Bearer ${secret}` },
  });
  const skill = await ask('/skills', { pattern, instructions: 'say hello', source: 'a person' });
  const key = await ask('/v1/keys', { name: 'child', projects: [api.projectId], scopes: ['run:read'] });
  const review = await ask('/execute', { level: 5, job_type: 'probe', prompt: 'say hello' });
  const ladder = await ask('/v1/escalations', { job_type: 'probe', prompt: 'say hello' });
  const call = await ask('/v1/capabilities/probe/exec', { input: { text: 'hello' } });
  const { decision_id } = call.routing as unknown as { decision_id: string };
  return {
    runs: runs.map(({ run_id = '' }) => run_id),
    jobs: [job.job_id ?? ''],
    media: [job.job_id ?? ''],
    deliveries: [String(((await delivery.json()) as Record<string, string>).delivery_id)],
    schedules: [schedule.schedule_id ?? ''],
    skills: [skill.id ?? ''],
    keys: [key.key_id ?? ''],
    reviews: [review.review_id ?? ''],
    escalations: [ladder.escalation_id ?? ''],
    decisions: [decision_id],
    calls: [decision_id],
  };
}

function fieldsOf(api: TestApi, { endpoint }: Instance, ids: Record<string, readonly string[]>): KnownFields {
  return {
    endpoint: [endpoint],
    spec_url: [`${endpoint}/spec`],
    health_url: [`${endpoint}/health`],
    capability: ['probe'],
    pipeline: ['greet'],
    version: ['1'],
    job_id: ids.jobs ?? [],
    into: ids.skills ?? [],
    cron: ['30 4 * * mon-fri', '@daily'],
    timezone: ['UTC', 'Europe/Berlin'],
    from: [['hello']],
    projects: [[api.projectId]],
  };
}

export async function createThings(api: TestApi): Promise<Things> {
  const instance = await registerInstance(api, { name: 'probe' });
  const ids = await createIds(api);
  const named: Readonly<Record<string, readonly string[]>> = {
    name: ['greet', 'probe'],
    version: ['1'],
    step: ['hello'],
    delivery: ids.deliveries ?? [],
    file: ['a.txt'],
    scope: ['label:team=ads'],
    user: ['anna'],
  };
  return {
    fields: fieldsOf(api, instance, ids),
    paths: (path, parameter) =>
      named[parameter] ?? ids[path.split('/').find((part) => part in ids) ?? ''] ?? [],
    close: () => instance.stop(),
  };
}
