/** Gateways of models that others maintain, each as its guide starts it, in front of the upstream. They store nothing. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureCargoProgram, ensurePythonProgram } from '../../scripts/tools/ensure-program.ts';
import type { Place } from '../shared/run-bench.ts';
import { type Program, startPart } from './parts.ts';
import { type GatewayWithKey, gatewayModels, type ModelGateways } from './systems.ts';

/** Installed from the index of packages that pip is set up for. */
const litellmPackage = 'litellm[proxy]==1.106.12';
/** A gateway in Rust, built by cargo. */
const litellmRs = { crate: 'litellm-rs', version: '0.9.0', name: 'gateway', features: ['sqlite'] } as const;
/** The proxy of LiteLLM as its guide starts it, with a key. It stores nothing. */
async function startLitellm(place: Place, upstream: string): Promise<GatewayWithKey> {
  const command = await ensurePythonProgram(litellmPackage, 'litellm');
  const config = join(place.dataDir, 'litellm.json'); // JSON is YAML
  const apiKey = `sk-${randomBytes(32).toString('hex')}`;
  const { chat, messages } = gatewayModels;
  const model_list = [
    [chat, { model: 'openai/bench', api_base: `${upstream}/v1`, api_key: 'none' }],
    [messages, { model: `anthropic/${messages}`, api_base: upstream, api_key: 'none' }],
  ].map(([model_name, litellm_params]) => ({ model_name, litellm_params }));
  writeFileSync(config, JSON.stringify({ model_list }));
  const environment = {
    LITELLM_MASTER_KEY: apiKey,
    LITELLM_MODE: 'PRODUCTION',
    LITELLM_LOG: 'ERROR',
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  };
  const toProgram = (port: number): Program => {
    const args = ['--config', config, '--host', '127.0.0.1', '--port', String(port), '--telemetry', 'False'];
    return { command, args, environment };
  };
  const url = await startPart(place, 'LiteLLM', { toProgram, ready: '/health/liveliness' });
  return { url, apiKey };
}

/** As its example for development configures it: without a key, a database and limits, and with its checks of prompts. */
async function startLitellmRs(place: Place, upstream: string): Promise<GatewayWithKey> {
  const command = await ensureCargoProgram(litellmRs);
  const config = join(place.dataDir, 'litellm-rs.yaml');
  const own = {
    api_key: 'sk-none-000000000000000000000000',
    endpoint_access: 'private_network',
    timeout: 30,
  };
  const limits = { rpm: 1_000_000, tpm: 1_000_000_000, max_concurrent_requests: 1_000, max_retries: 0 };
  const { chat, messages } = gatewayModels;
  const identity = { capability_catalog_model: 'gpt-4o', pricing_model: null };
  const settings = { model_identity_mappings: { [chat]: identity } };
  const providers = [
    { name: 'openai', provider_type: 'openai', base_url: `${upstream}/v1`, models: [chat], settings },
    { name: 'anthropic', provider_type: 'anthropic', base_url: upstream, models: [messages] },
  ].map((provider) => ({ ...own, ...limits, ...provider }));
  const toProgram = (port: number): Program => {
    writeFileSync(config, JSON.stringify(litellmRsConfig(port, providers)));
    return { command, args: ['--config', config] };
  };
  return { url: await startPart(place, 'litellm-rs', { toProgram, ready: '/health' }), apiKey: 'none' };
}

/** The fields that its example for development sets, without checks of health. */
function litellmRsConfig(port: number, providers: readonly object[]): object {
  const off = { enabled: false };
  return {
    schema_version: '1.0',
    server: { host: '127.0.0.1', port, dev_mode: true },
    providers,
    router: { strategy: 'round_robin', load_balancer: { health_check_enabled: false } },
    storage: { database: { url: '', ...off }, redis: { url: '', ...off } },
    auth: { enable_jwt: false, enable_api_key: false, allow_anonymous: true, jwt_secret: '' },
    monitoring: { metrics: off, tracing: off, health: { path: '/health' } },
    pricing: { source: 'embedded://model_prices_extended', unpriced_model_policy: 'allow_unpriced' },
    cache: off,
    rate_limit: off,
  };
}

export async function startModelGateways(place: Place, upstream: string): Promise<ModelGateways> {
  return {
    litellm: await startLitellm(place, upstream),
    litellmRs: await startLitellmRs(place, upstream),
  };
}
