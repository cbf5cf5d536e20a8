/**
 * Requests in the form of OpenAI's responses: each is an ordinary direct call of a capability `model.…`. A response and
 * its conversation are kept among the cached answers of the project, with their limits and their erasure, so that the
 * next request can continue it.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { ModelResult } from '@capstan/core/contracts/openai';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { ModelResponse, ResponsesRequest } from '@capstan/core/contracts/responses';
import { AppError } from '@capstan/core/errors/app-error';
import { isList, isPlainObject } from '@capstan/core/json/values';
import type { RefusedField } from '@capstan/core/model-protocols/fields';
import {
  createResponseWriter,
  type ResponseHead,
  toAnswerMessage,
  toModelResponse,
} from '@capstan/core/model-protocols/responses';
import { type TranslatedResponse, translateResponses } from '@capstan/core/model-protocols/responses-request';
import { toNanoUsd } from '@capstan/core/money/nano-usd';
import { findCachedAnswer, removeCachedAnswers, storeCachedAnswer } from '../../db/attempt/cached-answer.ts';
import { attemptIdOf } from '../../parts/ids.ts';
import { type PreparedCall, prepareCall } from './client-protocol.ts';
import type { StreamedModel } from './model-calls.ts';
import { streamModel } from './model-calls.ts';
import { findModel } from './model-names.ts';
import {
  answerInProtocol,
  type ModelCtx,
  type OpenAiAnswer,
  type OpenAiOrder,
  type ProtocolBody,
} from './openai.ts';

type ResponseOrder = OpenAiOrder<ResponsesRequest>;

/** OpenAI keeps responses as long. */
const keptMs = 30 * 86_400_000;

interface KeptResponse {
  readonly response: JsonObject;
  readonly conversation: readonly JsonObject[];
}

/** The key of a response among the cached answers, of which every other one is of the inputs of a call. */
function keyOf(id: string): string {
  return createHash('sha256').update(`response ${id}`).digest('hex');
}

async function findKept(
  { db }: Pick<ModelCtx, 'db'>,
  projectId: string,
  id: string,
): Promise<KeptResponse | null> {
  const found = await findCachedAnswer(db, { project_id: projectId, keys: [keyOf(id)], ttl_ms: keptMs });
  const { response = null, conversation = null } = isPlainObject(found?.output) ? found.output : {};
  if (!isPlainObject(response) || !isList(conversation)) return null;
  return { response, conversation: conversation.filter(isPlainObject) };
}

interface PreparedResponse {
  readonly call: PreparedCall;
  readonly head: ResponseHead;
  readonly translation: TranslatedResponse;
}

async function prepareResponse(ctx: ModelCtx, order: ResponseOrder): Promise<PreparedResponse> {
  const { request, caller } = order;
  const capability = await findModel(ctx, caller, { model: request.model, kind: 'chat' });
  const previous = request.previous_response_id ?? null;
  const kept = previous === null ? null : await findKept(ctx, caller.project_id, previous);
  const translation = translateResponses(request, kept?.conversation);
  const unknown: RefusedField = {
    pointer: '/previous_response_id',
    code: 'previous_response_not_found',
    message: `no response ${previous} is stored`,
  };
  const isUnknown = previous !== null && kept === null;
  const call = await prepareCall(ctx, order, {
    capability,
    protocol: 'openai.responses',
    body: request as JsonObject,
    translation: isUnknown ? { ...translation, refused: [unknown, ...translation.refused] } : translation,
    // A provider does not know the responses that are kept here.
    isNeutral: kept !== null,
  });
  const head: ResponseHead = {
    id: randomUUID().replaceAll('-', ''),
    created: Math.floor(Date.now() / 1_000),
    request,
    toolKinds: translation.toolKinds,
  };
  return { call, head, translation };
}

/** The message of an answer with the names of tools that the model knows. */
function toKeptMessage(result: ModelResult, { toolNames }: TranslatedResponse): JsonObject {
  const plain = new Map([...toolNames].map(([short, name]) => [name, short]));
  const tool_calls = result.tool_calls?.map((call) => ({
    ...call,
    function: { ...call.function, name: plain.get(call.function.name) ?? call.function.name },
  }));
  return toAnswerMessage({ ...result, tool_calls });
}

type Routing = OpenAiAnswer<unknown>['routing'];

/** Keeps a response for the requests that continue it. A response that cannot be kept is answered anyway. */
async function keepResponse(
  ctx: ModelCtx,
  { caller, request, onNotKept }: ResponseOrder,
  { prepared: { call, translation }, result, routing, response }: EndedResponse,
): Promise<void> {
  if (request.store === false) return;
  const { db, answerKeeper, logger } = ctx;
  const { project_id } = caller;
  const conversation = [...translation.conversation, toKeptMessage(result, translation)];
  const output = { response: response as JsonObject, conversation } as unknown as Json;
  const fault = answerKeeper.findFault(project_id, output);
  if (fault !== null) return onNotKept?.(fault);
  try {
    await storeCachedAnswer(db, {
      project_id,
      key: keyOf(response.id),
      capability: call.capability,
      attempt_id: attemptIdOf(routing.decision_id),
      instance_id: '',
      endpoint: routing.chosen ?? '',
      cost_nano: toNanoUsd(routing.settled_usd ?? 0).toString(),
      output,
      ttl_ms: keptMs,
      is_of_own_alone: false,
    });
  } catch (error) {
    logger.warn({ err: error }, 'a response was not kept; no request can continue it');
  }
}

interface EndedResponse {
  readonly prepared: PreparedResponse;
  readonly result: ModelResult;
  readonly routing: Routing;
  readonly response: ModelResponse;
}

/** @throws AppError of a direct call, `not_found`, `output_invalid`, `request_invalid` */
export async function createResponse(
  ctx: ModelCtx,
  order: ResponseOrder,
): Promise<OpenAiAnswer<ProtocolBody<ModelResponse>>> {
  const prepared = await prepareResponse(ctx, order);
  const { call, head } = prepared;
  let ended: Omit<EndedResponse, 'routing'> | null = null;
  const answer = await answerInProtocol(ctx, { terms: order, call }, (result, costUsd) => {
    const response = toModelResponse(head, result, costUsd);
    ended = { prepared, result, response };
    return response;
  });
  if (ended !== null)
    await keepResponse(ctx, order, { ...(ended as EndedResponse), routing: answer.routing });
  return answer;
}

/**
 * @param toError the body of an error that ends the stream
 * @returns once the answer has begun
 * @throws AppError as `createResponse`, until then
 */
export async function streamResponse(
  ctx: ModelCtx,
  order: ResponseOrder,
  toError: (error: AppError) => JsonObject,
): Promise<StreamedModel> {
  const prepared = await prepareResponse(ctx, order);
  const { call, head } = prepared;
  return streamModel(ctx, order, {
    call,
    writer: createResponseWriter(head),
    toError,
    onResult: (result, routing) => {
      const response = toModelResponse(head, result, routing.settled_usd ?? 0);
      return keepResponse(ctx, { ...order, onNotKept: undefined }, { prepared, result, routing, response });
    },
  });
}

/** @throws AppError `not_found` */
export async function showResponse(
  ctx: Pick<ModelCtx, 'db'>,
  projectId: string,
  id: string,
): Promise<ModelResponse> {
  const kept = await findKept(ctx, projectId, id);
  if (kept === null) throw new AppError('not_found', `no response ${id} is stored`);
  return kept.response as unknown as ModelResponse;
}

/** @throws AppError `not_found` */
export async function deleteResponse({ db }: Pick<ModelCtx, 'db'>, projectId: string, id: string) {
  const removed = await removeCachedAnswers(db, projectId, { key: keyOf(id) });
  if (removed === 0) throw new AppError('not_found', `no response ${id} is stored`);
  return { id, object: 'response' as const, deleted: true as const };
}

/** @throws AppError `not_found`, and `state_conflict`: a stored response has ended */
export async function cancelResponse(
  ctx: Pick<ModelCtx, 'db'>,
  projectId: string,
  id: string,
): Promise<never> {
  await showResponse(ctx, projectId, id);
  throw new AppError(
    'state_conflict',
    `the response ${id} has ended; a running one is cancelled when its client disconnects`,
  );
}
