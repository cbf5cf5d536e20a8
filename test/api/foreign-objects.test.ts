/**
 * Two customers on one installation: the second tries every route with the names and ids of what the first one has. It
 * does not exist for them: no part of it is shown, and no part of it changes. two-tenants.test.ts does the same for
 * instances.
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRoutes } from '../../src/api/routes.ts';
import { ConfigSchema } from '../../src/config.ts';
import { connectOverHttp, useTool } from '../support/agents.ts';
import { type CallOptions, readJson, startTestApi, type TestApi } from '../support/api.ts';
import { registerInstance } from '../support/direct-calls.ts';
import { openStream } from '../support/project-stream.ts';

/** In every name that the first tenant gives. */
const mark = 'quokka';

interface Tenant {
  readonly projectId: string;
  readonly apiKey: string;
  readonly call: TestApi['call'];
}

type Ids = Readonly<
  Record<
    | 'decision'
    | 'job'
    | 'run'
    | 'review'
    | 'schedule'
    | 'skill'
    | 'webhook'
    | 'delivery'
    | 'escalation'
    | 'key',
    string
  >
>;

let api: TestApi;
let first: Tenant;
let second: Tenant;
let ids: Ids;

async function aTenant(called: string): Promise<Tenant> {
  const { projectId, apiKey } = await api.createProject(called);
  const authorization = `Bearer ${apiKey}`;
  const call: TestApi['call'] = (path, { headers, ...options } = {}) =>
    api.call(path, { ...options, headers: { authorization, ...headers } });
  return { projectId, apiKey, call };
}

const definition = { pipeline: mark, version: '1', steps: [{ id: mark, wait: '1d' }] };
const schedule = { name: mark, pipeline: mark, cron: '0 7 * * *', timezone: 'UTC', job: {} };
const skill = { pattern: { job_type: mark, error_patterns: [mark] }, instructions: mark, source: mark };
const hookSettings = { pipeline: mark, signature: 'bearer', filter: 'body.of != body.of' };
const hookSecret = `${mark}-bearer-secret`;
const webhook = { url: 'https://hooks.example/quokka', events: ['run.ended'] };

type Made = (path: string, body: object, field: string, headers?: object) => Promise<string>;

/** A hook, and a delivery to it. */
async function deliverOne(made: Made): Promise<string> {
  await made('/v1/hooks', { name: mark, secret: hookSecret, ...hookSettings }, 'hook_id');
  const path = `/v1/hooks/${mark}?project_id=${first.projectId}`;
  return made(path, { of: mark }, 'delivery_id', { authorization: `Bearer ${hookSecret}` });
}

/** One of everything, in the first tenant's project. */
async function furnish(): Promise<Ids> {
  const ask = async (method: string, path: string, body: unknown, headers = {}): Promise<string> => {
    const answer = await first.call(path, { method, body, headers });
    const text = await answer.text();
    expect([path, answer.ok, text]).toEqual([path, true, expect.any(String)]);
    return text;
  };
  const made = async (path: string, body: object, field: string, headers = {}): Promise<string> =>
    JSON.parse(await ask('POST', path, body, headers))[field];
  const run = await made('/v1/runs', { definition, job: {}, labels: { of: mark } }, 'run_id');
  await ask('POST', '/v1/pipelines', definition);
  await ask('PUT', `/v1/pipelines/${mark}/aliases/${mark}`, { version: '1' });
  await ask('PUT', `/v1/secrets/${mark}`, { value: `${mark}-value`, capabilities: ['any'] });
  await ask('PUT', `/v1/aliases/${mark}`, { capability: `model.${mark}` });
  await ask('PUT', '/v1/budgets', { scope: 'project', daily_limit_usd: 17 });
  await ask('PUT', `/v1/budgets/scoped/label:of=${mark}`, { period: 'day', limit_usd: 3 });
  const cached = { 'x-capstan-cache': '60', 'x-capstan-user': mark };
  const settings = `/v1/projects/${first.projectId}/settings`;
  await ask('PUT', settings, { content_days: 7 });
  const call = await ask('POST', `/v1/capabilities/model.${mark}/exec`, { input: { of: mark } }, cached);
  const job = await made('/v1/jobs', { job: { of: mark } }, 'job_id');
  await ask('PUT', `/v1/media/${job}/${mark}.txt`, mark);
  await ask('POST', '/execute', { level: 5, job_type: mark, prompt: mark });
  const [, reviews] = await readJson<{ items: { review_id: string }[] }>(first.call('/v1/reviews'));
  return {
    decision: JSON.parse(call).routing.decision_id,
    job,
    run,
    review: reviews.items[0]?.review_id ?? '',
    schedule: await made('/v1/schedules', schedule, 'schedule_id'),
    skill: await made('/skills', skill, 'id'),
    webhook: await made('/v1/webhooks', webhook, 'webhook_id'),
    delivery: await deliverOne(made),
    escalation: await made('/v1/escalations', { job_type: mark, prompt: mark }, 'escalation_id'),
    key: await made('/v1/keys', { name: mark, projects: [first.projectId], scopes: ['run:read'] }, 'key_id'),
  };
}

let before: readonly string[];
let endInstance: () => Promise<void>;
beforeAll(async () => {
  api = await startTestApi({ PAYLOAD_KEYS: `k:${randomBytes(32).toString('base64')}` });
  [first, second] = [await aTenant('first'), await aTenant('second')];
  const instance = await registerInstance(
    { ...api, call: first.call },
    { name: `model.${mark}`, shared_with: [] },
  );
  endInstance = () => instance.stop();
  ids = await furnish();
  before = await readAll();
});
afterAll(async () => {
  await endInstance();
  await api.close();
});

interface Try extends CallOptions {
  readonly path: string;
  readonly status: number;
}

/** A read of one thing, which is not there. */
const lacks = (path: string, more: Omit<Try, 'path' | 'status'> = {}): Try => ({
  path,
  status: 404,
  ...more,
});
/** A list or a sum over the own project alone. */
const own = (path: string): Try => ({ path, status: 200 });
const post = (body: unknown = {}) => ({ method: 'POST', body });

/** What the second tenant tries, by operation. */
const tries: Readonly<Record<string, () => Try>> = {
  get_job: () => lacks(`/v1/jobs/${ids.job}`),
  announce_upload: () =>
    lacks(`/v1/media/${ids.job}/${mark}.txt/upload`, post({ size: 4, sha256: '0'.repeat(64) })),
  store_file: () => lacks(`/v1/media/${ids.job}/${mark}.txt`, { method: 'PUT', body: 'other' }),
  head_file: () => lacks(`/v1/media/${ids.job}/${mark}.txt`, { method: 'HEAD' }),
  read_file: () => lacks(`/v1/media/${ids.job}/${mark}.txt`),
  delete_file: () => lacks(`/v1/media/${ids.job}/${mark}.txt`, { method: 'DELETE' }),
  list_pipelines: () => own('/v1/pipelines'),
  get_pipeline: () => lacks(`/v1/pipelines/${mark}`),
  list_pipeline_versions: () => lacks(`/v1/pipelines/${mark}/versions`),
  get_pipeline_version: () => lacks(`/v1/pipelines/${mark}/versions/1`),
  list_aliases: () => lacks(`/v1/pipelines/${mark}/aliases`),
  set_alias: () => lacks(`/v1/pipelines/${mark}/aliases/${mark}`, { method: 'PUT', body: { version: '1' } }),
  delete_alias: () => lacks(`/v1/pipelines/${mark}/aliases/${mark}`, { method: 'DELETE' }),
  draw_pipeline: () => lacks(`/v1/pipelines/${mark}/graph.svg`),
  draw_pipeline_version: () => lacks(`/v1/pipelines/${mark}/versions/1/graph.svg`),
  plan_pipeline: () => lacks(`/v1/pipelines/${mark}/plan`, post()),
  start_run: () => lacks('/v1/runs', post({ pipeline: mark, job: {} })),
  create_schedule: () => ({ path: '/v1/schedules', status: 422, ...post(schedule) }),
  start_runs: () => ({
    path: '/v1/runs/bulk',
    status: 200,
    ...post({ runs: [{ pipeline: mark, job: {} }] }),
  }),
  list_runs: () => own('/v1/runs'),
  count_runs: () => own('/v1/runs/count'),
  export_runs: () => own('/v1/runs/export'),
  get_runs_health: () => own('/v1/runs/health'),
  get_runs_summary: () => own('/v1/runs/summary'),
  cancel_runs: () => ({ path: `/v1/runs/bulk/cancel?label=of=${mark}`, status: 200, ...post() }),
  rerun_runs: () => ({ path: `/v1/runs/bulk/rerun?label=of=${mark}`, status: 200, ...post() }),
  raise_runs: () => ({
    path: `/v1/runs/bulk/raise?label=of=${mark}`,
    status: 200,
    ...post({ budget_ceiling_usd: 5 }),
  }),
  get_run: () => lacks(`/v1/runs/${ids.run}`),
  get_run_graph: () => lacks(`/v1/runs/${ids.run}/graph`),
  get_run_timeline: () => lacks(`/v1/runs/${ids.run}/timeline`),
  get_step: () => lacks(`/v1/runs/${ids.run}/steps/${mark}`),
  list_items: () => lacks(`/v1/runs/${ids.run}/steps/${mark}/items`),
  list_run_events: () => lacks(`/v1/runs/${ids.run}/events`),
  pause_run: () => lacks(`/v1/runs/${ids.run}/pause`, post()),
  resume_run: () => lacks(`/v1/runs/${ids.run}/resume`, post()),
  cancel_run: () => lacks(`/v1/runs/${ids.run}/cancel`, post()),
  rerun_run: () => lacks(`/v1/runs/${ids.run}/rerun`, post()),
  set_run_budget: () => lacks(`/v1/runs/${ids.run}/budget`, post({ budget_ceiling_usd: 5 })),
  list_decisions: () => own('/v1/decisions'),
  get_cache_summary: () => own('/v1/cache/summary'),
  list_cached: () => own('/v1/cache'),
  forget_cached: () => ({ path: `/v1/cache?capability=model.${mark}`, status: 200, method: 'DELETE' }),
  get_costs: () => own('/v1/costs'),
  get_cost_series: () => own('/v1/costs/series?by=capability'),
  list_ledger: () => own('/v1/ledger'),
  get_budgets: () => own('/v1/budgets'),
  list_scoped_budgets: () => own('/v1/budgets/scoped'),
  delete_scoped_budget: () => lacks(`/v1/budgets/scoped/label:of=${mark}`, { method: 'DELETE' }),
  list_model_aliases: () => own('/v1/aliases'),
  delete_model_alias: () => lacks(`/v1/aliases/${mark}`, { method: 'DELETE' }),
  list_capabilities: () => own('/v1/capabilities'),
  get_calls_health: () => own('/v1/calls/health'),
  get_calls_summary: () => own('/v1/calls/summary'),
  list_calls: () => own(`/v1/calls?user=${mark}`),
  get_call: () => lacks(`/v1/calls/${ids.decision}`),
  get_call_content: () => lacks(`/v1/calls/${ids.decision}/content`),
  list_models: () => own('/openai/v1/models'),
  list_schedules: () => own('/v1/schedules'),
  get_schedule: () => lacks(`/v1/schedules/${ids.schedule}`),
  replace_schedule: () => lacks(`/v1/schedules/${ids.schedule}`, { method: 'PUT', body: schedule }),
  pause_schedule: () => lacks(`/v1/schedules/${ids.schedule}/pause`, post()),
  resume_schedule: () => lacks(`/v1/schedules/${ids.schedule}/resume`, post()),
  trigger_schedule: () => lacks(`/v1/schedules/${ids.schedule}/trigger`, post()),
  delete_schedule: () => lacks(`/v1/schedules/${ids.schedule}`, { method: 'DELETE' }),
  list_secrets: () => own('/v1/secrets'),
  delete_secret: () => lacks(`/v1/secrets/${mark}`, { method: 'DELETE' }),
  list_reviews: () => own('/v1/reviews'),
  get_review: () => lacks(`/v1/reviews/${ids.review}`),
  claim_review: () => lacks(`/v1/reviews/${ids.review}/claim`, post()),
  release_review: () => lacks(`/v1/reviews/${ids.review}/release`, post()),
  decide_review: () =>
    lacks(`/v1/reviews/${ids.review}/decision`, {
      ...post({ action: 'reject' }),
      headers: { 'if-match': '"1"' },
    }),
  list_skills: () => own('/skills'),
  get_skill: () => lacks(`/skills/${ids.skill}`),
  change_skill: () => lacks(`/skills/${ids.skill}`, { method: 'PATCH', body: { instructions: 'other' } }),
  retire_skill: () => lacks(`/skills/${ids.skill}/retire`, post()),
  list_skill_uses: () => lacks(`/skills/${ids.skill}/uses`),
  get_skill_worth: () => lacks(`/skills/${ids.skill}/worth`),
  list_webhooks: () => own('/v1/webhooks'),
  test_webhook: () => lacks(`/v1/webhooks/${ids.webhook}/test`, post()),
  list_webhook_deliveries: () => lacks(`/v1/webhooks/${ids.webhook}/deliveries`),
  replace_webhook: () => lacks(`/v1/webhooks/${ids.webhook}`, { method: 'PUT', body: webhook }),
  delete_webhook: () => lacks(`/v1/webhooks/${ids.webhook}`, { method: 'DELETE' }),
  list_schedule_gaps: () => lacks(`/v1/schedules/${ids.schedule}/history`),
  create_backfill: () =>
    lacks(
      `/v1/schedules/${ids.schedule}/backfills`,
      post({ from: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z' }),
    ),
  list_backfills: () => lacks(`/v1/schedules/${ids.schedule}/backfills`),
  get_backfill: () => lacks(`/v1/schedules/${ids.schedule}/backfills/bkf_1`),
  cancel_backfill: () => lacks(`/v1/schedules/${ids.schedule}/backfills/bkf_1/cancel`, post()),
  send_event: () => ({ path: `/v1/events/${mark}`, status: 202, ...post({ payload: 1 }) }),
  list_hooks: () => own('/v1/hooks'),
  get_hook: () => lacks(`/v1/hooks/${mark}`),
  replace_hook: () => lacks(`/v1/hooks/${mark}`, { method: 'PUT', body: hookSettings }),
  delete_hook: () => lacks(`/v1/hooks/${mark}`, { method: 'DELETE' }),
  rotate_hook: () => lacks(`/v1/hooks/${mark}/rotate`, post()),
  list_hook_deliveries: () => lacks(`/v1/hooks/${mark}/deliveries`),
  get_hook_delivery: () => lacks(`/v1/hooks/${mark}/deliveries/${ids.delivery}`),
  replay_hook_delivery: () => lacks(`/v1/hooks/${mark}/deliveries/${ids.delivery}/replay`, post()),
  get_escalation: () => lacks(`/v1/escalations/${ids.escalation}`),
  list_keys: () => own('/v1/keys'),
  rotate_key: () => lacks(`/v1/keys/${ids.key}/rotate`, post()),
  revoke_key: () => lacks(`/v1/keys/${ids.key}`, { method: 'DELETE' }),
  list_projects: () => own('/v1/projects'),
  list_audit: () => own('/v1/audit'),
  list_sessions: () => own('/v1/sessions'),
  revoke_session: () => lacks(`/v1/sessions/${ids.key}`, { method: 'DELETE' }),
  erase_user: () => ({ path: `/v1/users/${mark}`, status: 200, method: 'DELETE' }),
  erase_project: () => ({ path: `/v1/projects/${first.projectId}`, status: 403, method: 'DELETE' }),
  get_erasure: () => ({ path: `/v1/projects/${first.projectId}/erasure`, status: 403 }),
  'list_runs in the name of the first project': () => ({
    path: '/v1/runs',
    status: 403,
    headers: { 'x-project-id': first.projectId },
  }),
  'get_run in the name of the first project': () => ({
    path: `/v1/runs/${ids.run}?project_id=${first.projectId}`,
    status: 403,
  }),
  'start_run of its job': () => lacks('/v1/runs', post({ definition, job_id: ids.job })),
};

/** No word of the first tenant's but those that the second one has sent. */
function requireNoTrace(text: string, said: string): void {
  const traces = [mark, first.projectId, ...Object.values(ids)].filter((trace) => !said.includes(trace));
  expect(traces.filter((trace) => text.includes(trace))).toEqual([]);
}

/** All that the first tenant has, as it reads it. Times of reads and of maintenance are left out. */
async function readAll(): Promise<readonly string[]> {
  const places = [
    ...['runs', 'jobs', 'schedules', 'reviews', 'escalations'].map(
      (kind) => `/v1/${kind}/${ids[kind.slice(0, -1) as keyof Ids]}`,
    ),
    ...[`/v1/pipelines/${mark}/versions/1`, `/v1/pipelines/${mark}/aliases`, `/skills/${ids.skill}`],
    ...[
      'secrets',
      'aliases',
      'webhooks',
      'hooks',
      `hooks/${mark}/deliveries`,
      'keys',
      'budgets',
      'budgets/scoped',
      'cache',
    ].map((kind) => `/v1/${kind}`),
    `/v1/media/${ids.job}/${mark}.txt`,
  ];
  return Promise.all(
    places.map(async (path) => {
      const answer = await first.call(path);
      return `${path} ${answer.status} ${await answer.text()}`;
    }),
  );
}

test.each(Object.entries(tries))('%s', async (_, attempt) => {
  const { path, status, ...options } = attempt();
  const answer = await second.call(path, options);
  const text = await answer.text();
  expect([answer.status, text]).toEqual([status, expect.any(String)]);
  requireNoTrace(text, path + JSON.stringify(options));
});

/** Tried by tests of their own, below. */
const triedBelow = ['follow_project', 'call_agent_tools'];
/** Made for the own project; they take no id of another one. test/api/two-tenants.test.ts tries those of instances. */
const makes =
  /^(create|open|close|get_session|begin|finish|set|store|validate|plan_definition|revoke_sessions|get_limits)/;

test('every route that reads or changes existing objects is tried', () => {
  const routes = createRoutes(ConfigSchema.parse({ DATABASE_URL: 'postgres://localhost/none' }));
  const ofInstances =
    /^\/(v1\/(capabilities|hosts|publishers|route|decisions)|openai|anthropic|execute|advise|v1\/escalations$)/;
  const wanted = routes
    .filter(
      ({ scope, path, operation }) => scope !== null && !ofInstances.test(path) && !makes.test(operation),
    )
    .map(({ operation }) => operation);
  expect(wanted.filter((operation) => !(operation in tries) && !triedBelow.includes(operation))).toEqual([]);
});

test('call_agent_tools', async () => {
  const client = await connectOverHttp({ url: api.url, key: second.apiKey });
  requireNoTrace(JSON.stringify((await client.listTools()).tools), '');
  for (const [tool, args] of [
    ['get_run', { run_id: ids.run }],
    ['cancel_run', { run_id: ids.run }],
    ['start_run', { pipeline: mark, job: {} }],
    ['plan', { pipeline: mark, job: {} }],
    ['list_reviews', { review_id: ids.review }],
    ['decide_review', { review_id: ids.review, version: 1, action: 'reject' }],
  ] as const) {
    const { content, isError } = await useTool(client, tool, args);
    expect([tool, isError]).toEqual([tool, true]);
    requireNoTrace(JSON.stringify(content), JSON.stringify(args));
  }
  for (const tool of ['list_reviews', 'costs']) {
    requireNoTrace(JSON.stringify(await useTool(client, tool)), '');
  }
  await expect(useTool(client, `run_${mark}`, {})).rejects.toThrow('there is no tool');
  await client.close();
});

test('nothing of the first has changed', async () => {
  expect(await readAll()).toEqual(before);
});

test('follow_project', async () => {
  const stream = await openStream(second, `topics=runs,reviews,instances,budgets&run_id=${ids.run}`);
  const own = await openStream(first, 'topics=runs,budgets');
  await first.call(`/v1/runs/${ids.run}/budget`, { body: { budget_ceiling_usd: 7 } });
  await first.call('/v1/budgets', { method: 'PUT', body: { scope: 'project', daily_limit_usd: 17 } });
  await own.next('run');
  requireNoTrace(JSON.stringify(stream.frames), '');
  await Promise.all([stream.close(), own.close()]);
});
