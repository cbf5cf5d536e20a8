/**
 * Requests in OpenAI's form: each is an ordinary direct call of a capability, `model.…` for a chat completion and
 * `embed.…` for embeddings.
 */
import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { ExecAnswer } from '../../contracts/decision.ts';
import {
  type ChatCompletion,
  type ChatRequest,
  EmbeddingResult,
  type EmbeddingsAnswer,
  type EmbeddingsRequest,
  type Model,
} from '../../contracts/openai.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import {
  type ChatHead,
  createChatWriter,
  toCompletion,
  toEmbeddingInput,
  toEmbeddings,
  toModelInput,
} from '../../core/model-protocols/openai.ts';
import { createNameSuggester } from '../../core/nearest-name.ts';
import { listCapabilityNames } from '../../db/instance/capability-name.ts';
import { AppError } from '../../errors/app-error.ts';
import type { CallCtx } from './call-service.ts';
import { askModel, type CallTerms, callModel, streamModel } from './model-calls.ts';

export interface OpenAiOrder<Request> extends CallTerms {
  readonly request: Request;
}

type ChatOrder = OpenAiOrder<ChatRequest>;

export interface OpenAiAnswer<Body> {
  readonly body: Body;
  readonly routing: ExecAnswer['routing'];
  readonly isReplayed: boolean;
}

/** What the names of capabilities begin with that serve a kind of request. */
const prefixes = { chat: 'model.', embeddings: 'embed.' } as const;
type ModelKind = keyof typeof prefixes;

function isModel(name: string): boolean {
  return Object.values(prefixes).some((prefix) => name.startsWith(prefix));
}

function isUp({ state }: { readonly state: string }): boolean {
  return state === 'up';
}

/** Lists the names that requests may give as `model`. */
export async function listModels({ db, fleet }: Pick<CallCtx, 'db' | 'fleet'>): Promise<Model[]> {
  const names = [...(await listCapabilityNames(db))].filter(isModel).toSorted();
  return names.map((id) => {
    const up = fleet.of(id).instances.filter(isUp);
    const rates = up.map(({ rate_usd }) => rate_usd);
    return {
      id,
      object: 'model',
      created: 0,
      owned_by: 'capstan',
      instances_up: up.length,
      rate_usd: rates.length === 0 ? null : Math.min(...rates),
    };
  });
}

/**
 * The capability that a request means by `model`.
 * @throws AppError `not_found` with the nearest name
 */
export async function findModel(
  { db, fleet }: Pick<CallCtx, 'db' | 'fleet'>,
  model: string,
  kind: ModelKind,
): Promise<string> {
  const prefix = prefixes[kind];
  const name = model.startsWith(prefix) ? model : `${prefix}${model}`;
  if (fleet.of(name).instances.length > 0) return name;
  const names = [...(await listCapabilityNames(db))].filter((known) => known.startsWith(prefix));
  if (names.includes(name)) return name;
  const suggestion = createNameSuggester(names)(name);
  const known = names.length === 0 ? 'none is registered' : `registered are ${names.toSorted().join(', ')}`;
  const message = `there is no model ${model}; ${suggestion ?? known}`;
  throw new AppError('not_found', message, {
    errors: [{ pointer: '/model', code: 'model_not_found', message, ...(suggestion && { suggestion }) }],
  });
}

/** @throws AppError `not_found` */
export async function showModel(ctx: Pick<CallCtx, 'db' | 'fleet'>, model: string): Promise<Model> {
  const found = (await listModels(ctx)).find(
    ({ id }) => id === model || id === `${prefixes.chat}${model}` || id === `${prefixes.embeddings}${model}`,
  );
  if (found !== undefined) return found;
  await findModel(ctx, model, 'chat');
  throw new AppError('not_found', `there is no model ${model}`);
}

function headOf({ model }: ChatRequest): ChatHead {
  return { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1_000), model };
}

/** @throws AppError of a direct call, `not_found`, `output_invalid` */
export async function completeChat(ctx: CallCtx, order: ChatOrder): Promise<OpenAiAnswer<ChatCompletion>> {
  const { request } = order;
  const capability = await findModel(ctx, request.model, 'chat');
  const { result, ...facts } = await askModel(ctx, order, { capability, input: toModelInput(request) });
  return { body: toCompletion(headOf(request), result, facts.routing.settled_usd ?? 0), ...facts };
}

/**
 * @param toError the body of an error that ends the stream
 * @returns server-sent events, once the answer has begun
 * @throws AppError as `completeChat`, until then
 */
export async function streamChat(
  ctx: CallCtx,
  order: ChatOrder,
  toError: (error: AppError) => JsonObject,
): Promise<Readable> {
  const { request } = order;
  const capability = await findModel(ctx, request.model, 'chat');
  const includesUsage = request.stream_options?.include_usage === true;
  const writer = createChatWriter(headOf(request), { includesUsage, choices: request.n ?? 1 });
  return streamModel(ctx, order, { capability, input: toModelInput(request), writer, toError });
}

/** @throws AppError of a direct call, `not_found`, `output_invalid` */
export async function embedTexts(
  ctx: CallCtx,
  order: OpenAiOrder<EmbeddingsRequest>,
): Promise<OpenAiAnswer<EmbeddingsAnswer>> {
  const { request } = order;
  const capability = await findModel(ctx, request.model, 'embeddings');
  const call = { capability, input: toEmbeddingInput(request) };
  const { output, routing, isReplayed } = await callModel(ctx, order, call);
  const { success, data } = EmbeddingResult.safeParse(output);
  if (!success)
    throw new AppError('output_invalid', `${capability} answered without embeddings: vectors in base64`);
  return { body: toEmbeddings(request, data, routing.settled_usd ?? 0), routing, isReplayed };
}
