/**
 * Two customers on one installation. Every route is tried by the second one: objects of the first do not exist for it,
 * until they are shared. The table has a verdict for each route, so that a new route needs one.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRoutes } from '../../src/api/routes.ts';
import { ConfigSchema } from '../../src/config.ts';
import { connectOverHttp, useTool } from '../support/agents.ts';
import { type CallOptions, startTestApi, type TestApi } from '../support/api.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { openStream } from '../support/project-stream.ts';
import { createServedModels } from '../support/served-models.ts';
import { waitFor } from '../support/wait.ts';
import { priceAt } from '../support/wrapped-models.ts';

interface Tenant {
  readonly projectId: string;
  readonly apiKey: string;
  readonly call: TestApi['call'];
}

let api: TestApi;
let provider: ModelServer;
let models: ReturnType<typeof createServedModels>;
let first: Tenant;
let second: Tenant;
let endpoint: string;
let foreignDecision: string;
let foreignResponse: string;

const name = 'model.zeta';
const hostName = 'box-zeta';
const input = { messages: [{ role: 'user', content: 'Hi' }] };
const definition = { pipeline: 'asks', version: '1', steps: [{ id: 'ask', capability: name, input }] };

async function aTenant(called: string): Promise<Tenant> {
  const { projectId, apiKey } = await api.createProject(called);
  const authorization = `Bearer ${apiKey}`;
  const call: TestApi['call'] = (path, { headers, ...options } = {}) =>
    api.call(path, { ...options, headers: { authorization, ...headers } });
  return { projectId, apiKey, call };
}

async function spentBy({ call }: Tenant): Promise<number> {
  return ((await (await call('/v1/costs?period=day')).json()) as { today_spend_usd: number }).today_spend_usd;
}

async function share(shared_with: 'all' | readonly string[]): Promise<void> {
  const answer = await first.call(`/v1/capabilities/${name}/sharing`, {
    method: 'PUT',
    body: { shared_with },
  });
  expect(answer.status).toBe(200);
  await api.refreshFleet();
}

beforeAll(async () => {
  [api, provider] = await Promise.all([
    startTestApi({ LADDER_LEVELS: 'fast=model.zeta' }),
    startModelServer(),
  ]);
  provider.answer(() => ({
    text: '{"instructions": "try again", "reasoning": "it may work", "result": "done"}',
  }));
  [first, second] = [await aTenant('first'), await aTenant('second')];
  models = createServedModels(
    { url: api.url, apiKey: first.apiKey, waitForInstance: api.waitForInstance },
    provider,
    'none',
  );
  endpoint = (await models.start(name, priceAt(0.25))).endpoint;
  await api.db('host').insert({ owner_project: first.projectId, name: hostName, slots: 100 });
  await api.db('instance').where({ endpoint }).update({ host: hostName, host_slots: 100, takes: 1 });
  await api.refreshFleet();
  const answer = await first.call(`/v1/capabilities/${name}/exec`, { body: { input } });
  foreignDecision = ((await answer.json()) as { routing: { decision_id: string } }).routing.decision_id;
  const response = await first.call('/openai/v1/responses', { body: { model: 'zeta', input: 'Hi' } });
  foreignResponse = ((await response.json()) as { id: string }).id;
  await second.call('/v1/pipelines', { body: definition });
});
afterAll(async () => {
  await models.stop();
  await Promise.all([provider.close(), api.close()]);
});

interface Try extends CallOptions {
  readonly path: string;
  /** Status while the instance is private, and once it is shared with the second tenant. */
  readonly statuses: readonly [number, number];
}

const named = `/v1/capabilities/${name}`;
const urls = () => ({ endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` });

/** What the second tenant tries, by operation. */
const tries: Readonly<Record<string, () => Try>> = {
  exec_capability: () => ({ path: `${named}/exec`, body: { input }, statuses: [404, 200] }),
  check_input: () => ({ path: `${named}/check`, body: { input }, statuses: [404, 200] }),
  preview_route: () => ({ path: '/v1/route', body: { capability: name }, statuses: [404, 200] }),
  list_decisions: () => ({ path: '/v1/decisions', statuses: [200, 200] }),
  get_decision: () => ({ path: `/v1/decisions/${foreignDecision}`, statuses: [404, 404] }),
  register_instance: () => ({
    path: '/v1/capabilities',
    body: { name, version: '1', tags: [], cost_model: { type: 'free', rate_usd: 0 }, ...urls() },
    statuses: [403, 403],
  }),
  list_capabilities: () => ({ path: '/v1/capabilities', statuses: [200, 200] }),
  get_capability: () => ({ path: named, statuses: [404, 200] }),
  get_calls_health: () => ({ path: '/v1/calls/health', statuses: [200, 200] }),
  get_calls_summary: () => ({ path: '/v1/calls/summary', statuses: [200, 200] }),
  list_calls: () => ({ path: '/v1/calls?outcome=succeeded', statuses: [200, 200] }),
  get_call: () => ({ path: `/v1/calls/${foreignDecision}`, statuses: [404, 404] }),
  get_call_content: () => ({ path: `/v1/calls/${foreignDecision}/content`, statuses: [404, 404] }),
  send_heartbeat: () => ({ path: `${named}/heartbeat`, body: { endpoint }, statuses: [404, 403] }),
  deregister_instance: () => ({ path: named, method: 'DELETE', body: { endpoint }, statuses: [404, 403] }),
  drain_instance: () => ({ path: `${named}/drain`, body: { endpoint }, statuses: [404, 403] }),
  undrain_instance: () => ({ path: `${named}/undrain`, body: { endpoint }, statuses: [404, 403] }),
  warm_instance: () => ({ path: `${named}/warm`, body: { endpoint }, statuses: [404, 403] }),
  list_hosts: () => ({ path: '/v1/hosts', statuses: [200, 200] }),
  drain_host: () => ({ path: `/v1/hosts/${hostName}/drain`, body: {}, statuses: [404, 404] }),
  undrain_host: () => ({ path: `/v1/hosts/${hostName}/undrain`, body: {}, statuses: [404, 404] }),
  warm_host: () => ({ path: `/v1/hosts/${hostName}/warm`, body: {}, statuses: [404, 404] }),
  share_instances: () => ({
    path: `${named}/sharing`,
    method: 'PUT',
    body: { shared_with: [], endpoint },
    statuses: [404, 403],
  }),
  list_publishers: () => ({ path: '/v1/publishers', statuses: [403, 403] }),
  set_publisher: () => ({
    path: `/v1/publishers/${name}`,
    method: 'PUT',
    body: { projects: [second.projectId] },
    statuses: [403, 403],
  }),
  set_project_settings: () => ({
    path: `/v1/projects/${first.projectId}/settings`,
    method: 'PUT',
    body: { strict: true },
    statuses: [404, 404],
  }),
  create_chat_completion: () => ({
    path: '/openai/v1/chat/completions',
    body: { model: 'zeta', ...input },
    statuses: [404, 200],
  }),
  create_embeddings: () => ({
    path: '/openai/v1/embeddings',
    body: { model: 'zeta', input: 'Hi' },
    statuses: [404, 404],
  }),
  list_models: () => ({ path: '/openai/v1/models', statuses: [200, 200] }),
  get_model: () => ({ path: '/openai/v1/models/zeta', statuses: [404, 200] }),
  create_message: () => ({
    path: '/anthropic/v1/messages',
    body: { model: 'zeta', max_tokens: 9, ...input },
    statuses: [404, 200],
  }),
  create_response: () => ({
    path: '/openai/v1/responses',
    body: { model: 'zeta', input: 'Hi' },
    statuses: [404, 200],
  }),
  get_response: () => ({ path: `/openai/v1/responses/${foreignResponse}`, statuses: [404, 404] }),
  delete_response: () => ({
    path: `/openai/v1/responses/${foreignResponse}`,
    method: 'DELETE',
    statuses: [404, 404],
  }),
  cancel_response: () => ({
    path: `/openai/v1/responses/${foreignResponse}/cancel`,
    method: 'POST',
    statuses: [404, 404],
  }),
  count_message_tokens: () => ({
    path: '/anthropic/v1/messages/count_tokens',
    body: { model: 'zeta', ...input },
    statuses: [404, 200],
  }),
  list_anthropic_models: () => ({ path: '/anthropic/v1/models', statuses: [200, 200] }),
  get_anthropic_model: () => ({ path: '/anthropic/v1/models/zeta', statuses: [404, 200] }),
  set_model_alias: () => ({
    path: '/v1/aliases/quick',
    method: 'PUT',
    body: { capability: name },
    statuses: [404, 200],
  }),
  execute_level: () => ({
    path: '/execute',
    body: { level: 1, job_type: 'tidy', prompt: 'Tidy up.' },
    statuses: [200, 200],
  }),
  advise: () => ({
    path: '/advise',
    body: { from_level: 1, job_type: 'tidy', error: 'untidy' },
    statuses: [200, 200],
  }),
  start_escalation: () => ({
    path: '/v1/escalations',
    body: { job_type: 'tidy', prompt: 'Tidy up.' },
    statuses: [202, 202],
  }),
  validate_pipeline: () => ({ path: '/v1/pipelines/validate', body: definition, statuses: [200, 200] }),
  validate_definition: () => ({
    path: '/v1/validate',
    body: { text: JSON.stringify(definition) },
    statuses: [200, 200],
  }),
  store_pipeline: () => ({ path: '/v1/pipelines', body: definition, statuses: [200, 200] }),
  plan_pipeline: () => ({ path: '/v1/pipelines/asks/plan', body: { job: {} }, statuses: [200, 200] }),
  plan_definition: () => ({ path: '/v1/plan', body: { definition, job: {} }, statuses: [200, 200] }),
  start_run: () => ({ path: '/v1/runs', body: { pipeline: 'asks', job: {} }, statuses: [422, 202] }),
  start_runs: () => ({
    path: '/v1/runs/bulk',
    body: { runs: [{ pipeline: 'asks', job: {} }] },
    statuses: [200, 200],
  }),
  get_costs: () => ({ path: '/v1/costs?period=day', statuses: [200, 200] }),
  get_limits: () => ({ path: '/v1/limits', statuses: [200, 200] }),
};

/** Answered from rows of the caller's project, or of none: foreign-objects.test.ts tries them. */
const ofOwnRows = [
  ...[
    'create_project',
    'list_projects',
    'erase_project',
    'get_erasure',
    'create_key',
    'list_keys',
    'revoke_key',
  ],
  ...['rotate_key', 'list_audit', 'list_cached', 'forget_cached', 'get_escalation', 'create_job', 'get_job'],
  ...['announce_upload', 'store_file', 'head_file', 'read_file', 'delete_file'],
  ...[
    'get_cost_series',
    'list_ledger',
    'get_budgets',
    'set_budgets',
    'list_scoped_budgets',
    'set_scoped_budget',
  ],
  ...['delete_scoped_budget', 'erase_user', 'list_model_aliases', 'delete_model_alias', 'list_pipelines'],
  ...['get_pipeline', 'list_pipeline_versions', 'get_pipeline_version', 'list_aliases', 'set_alias'],
  ...['delete_alias', 'get_cache_summary'],
  ...[
    'draw_pipeline',
    'draw_pipeline_version',
    'list_reviews',
    'get_review',
    'claim_review',
    'release_review',
  ],
  ...['decide_review', 'pause_run', 'resume_run', 'cancel_runs', 'rerun_runs', 'raise_runs', 'cancel_run'],
  ...[
    'rerun_run',
    'set_run_budget',
    'get_run_graph',
    'get_run_timeline',
    'list_runs',
    'export_runs',
    'count_runs',
  ],
  ...[
    'get_runs_summary',
    'get_runs_health',
    'get_run',
    'get_step',
    'list_items',
    'list_run_events',
    'pause_schedule',
  ],
  ...['resume_schedule', 'create_schedule', 'list_schedules', 'get_schedule', 'replace_schedule'],
  ...['delete_schedule', 'trigger_schedule', 'list_secrets', 'set_secret', 'delete_secret'],
  ...[
    'get_session',
    'close_session',
    'create_login_link',
    'list_sessions',
    'revoke_sessions',
    'revoke_session',
  ],
  ...['create_skill', 'list_skills', 'get_skill', 'change_skill', 'retire_skill', 'list_skill_uses'],
  ...['get_skill_worth', 'create_webhook', 'list_webhooks', 'delete_webhook', 'test_webhook'],
  'replace_webhook',
  ...['list_webhook_deliveries', 'create_hook', 'list_hooks', 'get_hook', 'replace_hook', 'delete_hook'],
  ...['list_schedule_gaps', 'create_backfill', 'list_backfills', 'get_backfill', 'cancel_backfill'],
  ...['send_event', 'rotate_hook', 'list_hook_deliveries', 'get_hook_delivery', 'replay_hook_delivery'],
];
/** Tried by tests of their own, below. */
const triedBelow = ['call_agent_tools', 'follow_project'];
/** Open to all: they show nothing of a project. */
const isOpen = ({ scope }: { readonly scope: unknown }): boolean => scope === null;

const routes = createRoutes(ConfigSchema.parse({ DATABASE_URL: 'postgres://localhost/none' }));

/** No word of the first tenant's instance but those that the second one has sent, now or in its pipeline. */
function requireNoTrace(text: string, said: string): void {
  const traces = [new URL(endpoint).port, first.projectId, 'zeta'].filter((trace) => !said.includes(trace));
  expect(traces.filter((trace) => text.includes(trace))).toEqual([]);
}

async function tryOut({ path, statuses: _, ...options }: Try): Promise<readonly [number, string]> {
  const answer = await second.call(path, options);
  return [answer.status, await answer.text()];
}

test('every route has a verdict', () => {
  const keyed = routes.filter((route) => !isOpen(route)).map(({ operation }) => operation);
  const judged = [...Object.keys(tries), ...ofOwnRows, ...triedBelow];
  expect(keyed.filter((operation) => !judged.includes(operation))).toEqual([]);
  expect(judged.filter((operation) => !keyed.includes(operation))).toEqual([]);
});

describe('an instance of the first tenant', () => {
  test.each(Object.entries(tries))('that is private is not there for the second: %s', async (_, attempt) => {
    const asked = provider.requests.length;
    const [status, text] = await tryOut(attempt());
    expect([status, text]).toEqual([attempt().statuses[0], expect.any(String)]);
    const said = JSON.stringify(attempt());
    requireNoTrace(text, said.includes('asks') ? said + JSON.stringify(definition) : said);
    expect(provider.requests.length).toBe(asked);
  });

  test('that is private is no frame of the stream', async () => {
    const [own, foreign] = [
      await openStream(first, 'topics=instances'),
      await openStream(second, 'topics=instances'),
    ];
    for (const act of ['drain', 'undrain']) {
      expect((await first.call(`${named}/${act}`, { body: { endpoint } })).status).toBe(200);
    }
    await own.next('instance', ({ drain }) => drain === undefined);
    await share([second.projectId]);
    expect(await foreign.next('instance')).toMatchObject({ name, shared_with: [second.projectId] });
    await share([]);
    await own.next('instance', ({ shared_with }) => shared_with.length === 0);
    expect(foreign.frames.filter(({ kind }) => kind === 'instance').length).toBeLessThan(own.frames.length);
    expect(JSON.stringify(foreign.frames)).not.toContain('"drain"');
    await Promise.all([own.close(), foreign.close()]);
  });

  test('that is private is no tool of an agent', async () => {
    const asked = provider.requests.length;
    const client = await connectOverHttp({ url: api.url, key: second.apiKey });
    const { tools } = await client.listTools();
    requireNoTrace(JSON.stringify(tools.filter(({ name }) => name !== 'run_asks')), '');
    await expect(useTool(client, 'call_model__zeta', input)).rejects.toThrow(
      'there is no tool call_model__zeta',
    );
    await client.close();
    expect(provider.requests.length).toBe(asked);
  });

  test('that is shared continues no stored response of the first', async () => {
    await share([second.projectId]);
    const asked = provider.requests.length;
    const refusal = async (previous_response_id: string) => {
      const body = { model: 'zeta', input: 'Hi', previous_response_id };
      const refused = await second.call('/openai/v1/responses', { body });
      return [refused.status, (await refused.text()).replaceAll(previous_response_id, 'ID')];
    };
    const refused = await refusal(foreignResponse);
    expect(refused).toEqual([400, expect.stringContaining('"previous_response_not_found"')]);
    expect(await refusal('resp_unknown')).toEqual(refused);
    expect(provider.requests.length).toBe(asked);
    await share([]);
  });

  test('that is shared is called by the second, who pays', async () => {
    await share([second.projectId]);
    const before = [await spentBy(first), await spentBy(second)];
    expect(before).toEqual([0.5, 0]);
    const asked = provider.requests.length;
    for (const [operation, attempt] of Object.entries(tries)) {
      const [status, text] = await tryOut(attempt());
      expect([operation, status, text]).toEqual([operation, attempt().statuses[1], expect.any(String)]);
    }
    const client = await connectOverHttp({ url: api.url, key: second.apiKey });
    expect((await useTool(client, 'call_model__zeta', input)).isError).toBe(false);
    await client.close();
    expect(provider.requests.length - asked).toBeGreaterThanOrEqual(6);
    await waitFor('all calls to be settled', async () => {
      const open = await api.db('attempt').whereNull('finished_at').select('attempt_id');
      return open.length === 0;
    });
    const made = await api
      .db('attempt')
      .where({ project_id: second.projectId })
      .select('endpoint', 'settled_nano');
    expect(new Set(made.map(({ endpoint: at }) => at))).toEqual(new Set([endpoint]));
    const paid = made.reduce((sum, { settled_nano }) => sum + Number(settled_nano), 0) / 1e9;
    expect(paid).toBeGreaterThanOrEqual(1);
    expect([await spentBy(first), await spentBy(second)]).toEqual([0.5, paid]);
    await share([]);
    expect((await tryOut((tries.exec_capability as () => Try)()))[0]).toBe(404);
  });
});
