/** Hooks: deliveries from outside, which need no key, and their management. */
import {
  Hook,
  HookCreated,
  HookDeliveryDetail,
  HookDeliveryList,
  HookList,
  HookReceipt,
  HookReply,
  HookRequest,
  HookRotation,
  HookSettings,
} from '@capstan/core/contracts/hook';
import { type Json, ListQuery, PipelineName } from '@capstan/core/contracts/primitives';
import { AppError } from '@capstan/core/errors/app-error';
import { readForm, UnreadableForm } from '@capstan/core/hooks/received';
import { z } from 'zod';
import { type DeliveryAnswer, receiveDelivery, replayDelivery } from '../../use-cases/hooks/deliveries.ts';
import {
  createHook,
  getHook,
  getReceived,
  listHooksOf,
  listReceivedOf,
  removeHook,
  replaceHook,
  rotateHook,
} from '../../use-cases/hooks/hooks.ts';
import { json, optionalJson, type ReceivedRaw, rawBody } from '../input.ts';
import { KeyHeaders, markReplayed, startErrors } from '../parameters.ts';
import { type Route, route } from '../route.ts';

const HookPath = z.object({ name: PipelineName });
const DeliveryPath = HookPath.extend({ delivery: z.string().min(1).max(128) });

const forms = 'application/x-www-form-urlencoded';

/** @throws AppError `unsupported_media_type`, and as a JSON body */
function readBody({ mediaType, readJson, readText }: ReceivedRaw, bytes: Buffer): Json {
  if (mediaType === 'application/json' || mediaType.endsWith('+json')) return readJson(bytes);
  if (mediaType !== forms) {
    const found = mediaType === '' ? 'no Content-Type' : `Content-Type ${mediaType}`;
    throw new AppError('unsupported_media_type', `${found}; a hook accepts application/json, ${forms}`);
  }
  try {
    return readForm(readText(bytes), (text) => readJson(Buffer.from(text)));
  } catch (error) {
    throw error instanceof UnreadableForm ? new AppError('malformed_json', error.message) : error;
  }
}

function describeReceipt({ outcome, run_id, reason }: HookReceipt): string {
  return [outcome, run_id, reason].filter((part) => part !== null).join(': ');
}

/** Slack takes 200 alone, and shows the text of an answer to a form to the person who sent it. */
function answerSlack(answer: DeliveryAnswer, mediaType: string): HookReply {
  return 'outcome' in answer && mediaType === forms ? { text: describeReceipt(answer) } : answer;
}

/** The scope is not checked: a signature is the proof of the sender. */
const receive = route('POST /v1/hooks/{name}', {
  operation: 'receive_hook',
  tag: 'hooks',
  summary: 'Deliver a request to a hook, which may start a run',
  description:
    'Needs no key: the request proves its sender by the signature of the hook, over the body as it is sent. The body is JSON or a form. 202 answers what became of it; deliveries with one key within 24 hours start one run. Slack gets 200, and its challenge back.',
  scope: null,
  params: HookPath,
  query: z.object({
    project_id: z.string().min(1).max(128).meta({ description: 'The project of the hook; part of its url.' }),
  }),
  body: rawBody,
  responses: { 200: HookReply, 202: HookReply },
  errors: [
    'unauthenticated',
    'state_conflict',
    'expression_unresolved',
    'expression_limit',
    'rate_limited',
    ...startErrors,
  ],
  handle: async (ctx, { params, query, body, bytes, requestHeaders, asksToStart, sawWrongKey }) => {
    const answer = await receiveDelivery(ctx, {
      hook: { project_id: query.project_id, name: params.name },
      request: { headers: requestHeaders, bytes },
      readBody: () => readBody(body, bytes),
      asksToStart,
      sawWrongKey,
    });
    const isOfSlack = requestHeaders['x-slack-signature'] !== undefined;
    return isOfSlack
      ? { status: 200, body: answerSlack(answer, body.mediaType) }
      : { status: 202, body: answer };
  },
});

export const hookRoutes: readonly Route[] = [
  receive,
  route('POST /v1/hooks', {
    operation: 'create_hook',
    tag: 'hooks',
    summary: 'Create a hook; only this answer shows its secret',
    description:
      'Deliveries to its `url` start runs of a stored pipeline. The job, the filter and the key are templates over `body` and `headers`. Names belong to the project, so the `url` has its id.',
    scope: 'admin',
    body: json(HookRequest, 'data'),
    responses: { 201: HookCreated },
    errors: ['state_conflict', 'limit_reached'],
    handle: async (ctx, { caller, body }) => {
      const hook = await createHook(ctx, caller, body);
      return { status: 201, headers: { Location: `/v1/hooks/${hook.name}` }, body: hook };
    },
  }),
  route('GET /v1/hooks', {
    operation: 'list_hooks',
    tag: 'hooks',
    summary: 'List hooks by name',
    scope: 'run:read',
    query: ListQuery.strict(),
    responses: { 200: HookList },
    result: (ctx, { caller, query }) => listHooksOf(ctx, caller.project_id, query),
  }),
  route('GET /v1/hooks/{name}', {
    operation: 'get_hook',
    tag: 'hooks',
    summary: 'Show a hook',
    scope: 'run:read',
    params: HookPath,
    responses: { 200: Hook },
    result: (ctx, { caller: { project_id }, params }) => getHook(ctx, { project_id, ...params }),
  }),
  route('PUT /v1/hooks/{name}', {
    operation: 'replace_hook',
    tag: 'hooks',
    summary: 'Replace the settings of a hook; omitted fields get their defaults',
    description: 'Its name and its secret stay.',
    scope: 'admin',
    params: HookPath,
    body: json(HookSettings, 'data'),
    responses: { 200: Hook },
    result: (ctx, { caller: by, params, body }) => replaceHook(ctx, { by, ...params }, body),
  }),
  route('DELETE /v1/hooks/{name}', {
    operation: 'delete_hook',
    tag: 'hooks',
    summary: 'Delete a hook and its log; its runs continue',
    scope: 'admin',
    params: HookPath,
    responses: { 204: 'empty' },
    handle: async (ctx, { caller: by, params }) => {
      await removeHook(ctx, { by, ...params });
      return { status: 204 };
    },
  }),
  route('POST /v1/hooks/{name}/rotate', {
    operation: 'rotate_hook',
    tag: 'hooks',
    summary: 'Replace the secret of a hook; only this answer shows it',
    description: 'The former secret works for another `overlap_s` seconds, by default a day.',
    scope: 'admin',
    params: HookPath,
    body: optionalJson(HookRotation),
    responses: { 200: HookCreated },
    result: (ctx, { caller: by, params, body }) => rotateHook(ctx, { by, ...params }, body),
  }),
  route('GET /v1/hooks/{name}/deliveries', {
    operation: 'list_hook_deliveries',
    tag: 'hooks',
    summary: 'List the deliveries of a hook, newest first, for 30 days',
    description:
      'Requests that prove no sender are counted at the hook, and not listed. The log has up to a thousand.',
    scope: 'run:read',
    params: HookPath,
    query: ListQuery.strict(),
    responses: { 200: HookDeliveryList },
    result: (ctx, { caller: { project_id }, params, query }) =>
      listReceivedOf(ctx, { project_id, ...params }, query),
  }),
  route('GET /v1/hooks/{name}/deliveries/{delivery}', {
    operation: 'get_hook_delivery',
    tag: 'hooks',
    summary: 'Show a delivery with its headers and its body',
    scope: 'run:read',
    params: DeliveryPath,
    responses: { 200: HookDeliveryDetail },
    result: (ctx, { caller: { project_id }, params: { name, delivery } }) =>
      getReceived(ctx, { project_id, name }, delivery),
  }),
  route('POST /v1/hooks/{name}/deliveries/{delivery}/replay', {
    operation: 'replay_hook_delivery',
    tag: 'hooks',
    summary: 'Send a logged delivery again, by the settings of the hook as they are now',
    description: 'It starts another run, unless the filter is false.',
    scope: 'run:write',
    rate: 'start',
    params: DeliveryPath,
    headers: KeyHeaders,
    body: optionalJson(z.strictObject({})),
    responses: { 202: HookReceipt },
    errors: ['state_conflict', 'expression_unresolved', 'expression_limit', ...startErrors],
    handle: async (ctx, { caller: { project_id, key_id: by }, params, headers, asksToStart }) => {
      const { name, delivery: delivery_id } = params;
      const key = headers['idempotency-key'];
      const order = { hook: { project_id, name }, delivery_id, key, by, asksToStart };
      const receipt = await replayDelivery(ctx, order);
      return { status: 202, headers: markReplayed(receipt.outcome === 'repeated'), body: receipt };
    },
  }),
];
