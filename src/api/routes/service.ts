import { keptAnswerHours, mostSteps } from '@capstan/core/contracts/limits';
import { Limits } from '@capstan/core/contracts/request-limits';
import { z } from 'zod';
import { readReadiness } from '../../parts/health.ts';
import {
  type ApiConfig,
  type BodyLimits,
  bodyLimits,
  httpLimits,
  ratesOf,
  type TokenRate,
} from '../limits.ts';
import { type Route, route } from '../route.ts';

const Alive = z.strictObject({ status: z.literal('ok') });
const Readiness = z
  .strictObject({ ready: z.boolean(), detail: z.record(z.string(), z.string()) })
  .meta({ id: 'Readiness' });

function show({ stringBytes, anyCharacters: _, ...limits }: BodyLimits) {
  return { ...limits, string_bytes: stringBytes };
}

function showRates(config: ApiConfig): NonNullable<Limits['rates']> {
  const { request, start, escalation, heartbeat, session, wrong_key } = ratesOf(config);
  const showRate = ({ perSecond, burst }: TokenRate) => ({ per_second: perSecond, burst });
  return {
    request: showRate(request),
    start: showRate(start),
    escalation: showRate(escalation),
    heartbeat: showRate(heartbeat),
    session: showRate(session),
    wrong_key: showRate(wrong_key),
  };
}

function showLimits(config: ApiConfig): Limits {
  const isLimited = config.RATE_LIMITS === 'on';
  const { request, data, chat, definition } = bodyLimits(config);
  return {
    request: show(request),
    data: show(data),
    chat: show(chat),
    chat_messages: config.CHAT_MESSAGES,
    chat_tools: config.CHAT_TOOLS,
    definition: show(definition),
    media_bytes: config.MEDIA_LIMIT_BYTES,
    header_bytes: httpLimits.headerBytes,
    body_timeout_ms: httpLimits.bodyTimeoutMs,
    wait_seconds: httpLimits.waitSeconds,
    list_items: 200,
    open_runs: config.OPEN_RUNS_PER_PROJECT,
    pipeline_steps: mostSteps,
    idempotency_hours: keptAnswerHours,
    rates: isLimited ? showRates(config) : null,
    open_at_once: isLimited ? { requests: config.REQUESTS_AT_ONCE, streams: config.STREAMS_AT_ONCE } : null,
  };
}

export const serviceRoutes: readonly Route[] = [
  route('GET /livez', {
    operation: 'get_liveness',
    tag: 'service',
    summary: 'Check that the process answers',
    scope: null,
    responses: { 200: Alive },
    result: () => ({ status: 'ok' as const }),
  }),
  route('GET /readyz', {
    operation: 'get_readiness',
    tag: 'service',
    summary:
      'Check that the process accepts requests: its database answers and it is not shutting down; Temporal is only reported',
    scope: null,
    responses: { 200: Readiness, 503: Readiness },
    handle: async (ctx, { isClosing }) => {
      if (isClosing) return { status: 503, body: { ready: false, detail: { server: 'closing' } } };
      const readiness = await readReadiness(ctx);
      return { status: readiness.ready ? 200 : 503, body: readiness };
    },
  }),
  route('GET /v1/limits', {
    operation: 'get_limits',
    tag: 'service',
    summary: 'Show the limits of a request',
    scope: 'run:read',
    responses: { 200: Limits },
    result: (ctx) => showLimits(ctx.config),
  }),
];
