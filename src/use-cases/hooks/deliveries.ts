/**
 * A delivery to a hook, from its signature to its run. Only a delivery that proves its sender is read and logged; of
 * others the hook keeps a count and the latest reason. The run, the answer for equal deliveries and the entry of the log
 * are one transaction, so that a sender that tries again gets the first one's run.
 */
import { createHash } from 'node:crypto';
import type { HookOutcome, HookReceipt } from '@capstan/core/contracts/hook';
import type { Json } from '@capstan/core/contracts/primitives';
import type { RunRequest } from '@capstan/core/contracts/run';
import { AppError, toAppError } from '@capstan/core/errors/app-error';
import { deliveryIdOf, findHandshake, visibleHeaders } from '@capstan/core/hooks/received';
import type { Metrics } from '@capstan/core/telemetry/telemetry';
import type { ServerCtx } from '../../context.ts';
import {
  type HookKey,
  type HookRow,
  insertReceived,
  noteUnsigned,
  type ReceivedRow,
} from '../../db/webhook/hook.ts';
import { deliverSoon } from '../../parts/delivery/deliveries.ts';
import { newId } from '../../parts/ids.ts';
import { answerOnce, type Idempotency, type KeepAnswer } from '../idempotency.ts';
import { insertAdmittedRun } from '../runs/admission.ts';
import { runStarts } from '../runs/delivery.ts';
import { prepareOriginatedRun } from '../runs/submission.ts';
import { requireHook, requireReceived } from './hooks.ts';
import { findSignatureFault, type SignedRequest } from './signature.ts';
import { readDelivery, type WantedRun } from './templates.ts';

function countDelivery(metrics: Metrics, outcome: HookOutcome | 'unsigned'): void {
  metrics.add('hook_deliveries_total', { outcome });
}

/** Bodies above it are not kept, so that their deliveries cannot be sent again. */
const mostKeptBytes = 65_536;

/** A delivery as the log has it before its end. */
type Received = Pick<ReceivedRow, 'delivery_id' | 'headers' | 'body' | 'bytes' | 'replay_of'>;

interface Reception {
  readonly row: HookRow;
  readonly received: Received;
  /** Counts the start against the rate of the hook's key. */
  readonly asksToStart: (holder?: string) => void;
  /** A person sends it again: it starts another run, once for each key of theirs. */
  readonly again?: { readonly by: string; readonly key: string | null };
}

type HookEnd = Pick<ReceivedRow, 'outcome' | 'reason' | 'run_id' | 'key'>;

/** Texts of Postgres hold no NUL. */
function toText(text: string | null): string | null {
  return text?.replaceAll('\0', '\ufffd').slice(0, 2_000) ?? null;
}

function toRow(
  { row, received }: Reception,
  { outcome, run_id, ...end }: HookEnd,
): Omit<ReceivedRow, 'created_at'> {
  const isKept = received.bytes <= mostKeptBytes && outcome !== 'repeated';
  const [reason, key] = [toText(end.reason), toText(end.key)];
  const body = isKept ? received.body : null;
  return { ...received, hook_id: row.hook_id, outcome, run_id, reason, key, body };
}

function toReceipt(
  { received: { delivery_id } }: Reception,
  { outcome, run_id, reason }: HookEnd,
): HookReceipt {
  return { delivery_id, outcome, run_id, reason };
}

type ReceiveCtx = ServerCtx;

/** Ends a delivery that started no run. */
async function endDelivery(
  { db, telemetry }: Pick<ReceiveCtx, 'db' | 'telemetry'>,
  reception: Reception,
  end: HookEnd,
): Promise<HookReceipt> {
  await insertReceived(db, toRow(reception, end));
  countDelivery(telemetry.metrics, end.outcome);
  return toReceipt(reception, end);
}

function toRequest({ body }: HookRow, { job }: WantedRun): RunRequest {
  const { pipeline, version, alias, priority, budget_ceiling_usd, labels } = body;
  return { pipeline, version, alias, job, priority, budget_ceiling_usd, labels };
}

/** What the first delivery of a key has started. */
interface Started {
  readonly run_id: string;
  readonly delivery_id: string;
}

/** A key of any length and form; equal keys are equal whatever the bodies are. */
function toIdempotency(key: string | null): Idempotency | null {
  if (key === null) return null;
  const bodySha256 = createHash('sha256').update(key).digest();
  return { key: bodySha256.toString('hex'), bodySha256 };
}

/** @throws AppError as a request for the run, `rate_limited` */
async function startRun(ctx: ReceiveCtx, reception: Reception, wanted: WantedRun): Promise<HookReceipt> {
  const { db, config, telemetry } = ctx;
  const { row, received, asksToStart, again } = reception;
  const { project_id, hook_id, created_by: key_id } = row;
  const key = again === undefined ? wanted.key : again.key;
  const work = async (keep: KeepAnswer): Promise<Started> => {
    if (again === undefined) asksToStart(key_id);
    const order = {
      request: toRequest(row, wanted),
      origin: { key_id },
      ...(again === undefined ? {} : { by: again.by }),
    };
    const prepared = await prepareOriginatedRun(ctx, project_id, order);
    const { run_id } = prepared.row;
    const started = { run_id, delivery_id: received.delivery_id };
    await db.transaction(async (trx) => {
      await keep(trx, 202, started);
      await insertAdmittedRun(trx, prepared, config.OPEN_RUNS_PER_PROJECT);
      await insertReceived(trx, toRow(reception, { outcome: 'started', reason: null, run_id, key }));
    });
    return started;
  };
  const request = `POST /v1/hooks/${hook_id}`;
  const asked = { project_id, request, idempotency: toIdempotency(key), work };
  const { answer, replayed } = await answerOnce<Started>(db, asked);
  const { run_id, delivery_id: first } = answer;
  if (replayed) {
    const reason = `delivery ${first} has the same key`;
    return endDelivery(ctx, reception, { outcome: 'repeated', reason, run_id, key });
  }
  countDelivery(telemetry.metrics, 'started');
  void deliverSoon(ctx, runStarts, { run_id });
  return toReceipt(reception, { outcome: 'started', reason: null, run_id, key });
}

/** Logs why a delivery ends in an error. @throws AppError the same, in terms of the sender */
async function refuse(
  ctx: ReceiveCtx,
  reception: Reception,
  { outcome, key, error }: Pick<HookEnd, 'outcome' | 'key'> & { readonly error: unknown },
): Promise<never> {
  const told = toAppError(error);
  const { code, message } = told;
  if (code !== 'internal')
    await endDelivery(ctx, reception, { outcome, reason: `${code}: ${message}`, run_id: null, key });
  if (code !== 'not_found') throw error;
  throw new AppError('state_conflict', `the hook ${reception.row.name} starts nothing: ${message}`, {
    cause: error,
  });
}

/** Reads the delivery by the templates, and starts its run. @param senderKey for a hook without a key of its own */
async function execute(
  ctx: ReceiveCtx,
  reception: Reception,
  senderKey: string | null,
): Promise<HookReceipt> {
  const { row, received } = reception;
  const { name, body: settings } = row;
  if (!settings.enabled) {
    const error = new AppError('state_conflict', `the hook ${name} is disabled`);
    return refuse(ctx, reception, { outcome: 'refused', key: null, error });
  }
  const scope = { body: received.body, headers: received.headers };
  let wanted: WantedRun | null;
  try {
    wanted = await readDelivery(settings, scope, senderKey);
  } catch (error) {
    return refuse(ctx, reception, { outcome: 'failed', key: null, error });
  }
  if (wanted === null) {
    const reason = `the filter is false: ${settings.filter ?? ''}`;
    return endDelivery(ctx, reception, { outcome: 'filtered', reason, run_id: null, key: senderKey });
  }
  try {
    return await startRun(ctx, reception, wanted);
  } catch (error) {
    return refuse(ctx, reception, { outcome: 'refused', key: wanted.key, error });
  }
}

export interface IncomingDelivery extends Pick<Reception, 'asksToStart'> {
  readonly hook: HookKey;
  readonly request: SignedRequest;
  /** Called once the sender is known. @throws AppError for what is neither JSON nor a form */
  readonly readBody: () => Json;
  /** Counts a request that proves no sender against its address. @throws AppError `rate_limited` */
  readonly sawWrongKey: () => void;
}

/** @throws AppError `unauthenticated` */
async function requireSigned(
  { db, telemetry }: ReceiveCtx,
  { hook_id, body, secret, former_secret }: HookRow,
  { request, sawWrongKey }: IncomingDelivery,
): Promise<void> {
  const secrets = former_secret === null ? [secret] : [secret, former_secret];
  const fault = findSignatureFault(body.signature, request, { secrets, now: Date.now() });
  if (fault === null) return;
  countDelivery(telemetry.metrics, 'unsigned');
  sawWrongKey();
  await noteUnsigned(db, hook_id, fault);
  throw new AppError('unauthenticated', fault);
}

export type DeliveryAnswer = HookReceipt | { readonly challenge: string };

/**
 * @throws AppError `not_found`, `unauthenticated`, `state_conflict` of a hook that is disabled or whose pipeline is gone,
 * `expression_unresolved`, and as a request for the run
 */
export async function receiveDelivery(ctx: ReceiveCtx, incoming: IncomingDelivery): Promise<DeliveryAnswer> {
  const { hook, request, readBody, asksToStart, sawWrongKey } = incoming;
  const row = await requireHook(ctx, hook).catch((error: unknown) => {
    sawWrongKey();
    throw error;
  });
  await requireSigned(ctx, row, incoming);
  const { signature } = row.body;
  const headers = visibleHeaders(request.headers);
  const empty = { delivery_id: newId('received'), headers, bytes: request.bytes.length, replay_of: null };
  let body: Json;
  try {
    body = readBody();
  } catch (error) {
    const reception = { row, received: { ...empty, body: null }, asksToStart };
    return refuse(ctx, reception, { outcome: 'failed', key: null, error });
  }
  const reception = { row, received: { ...empty, body }, asksToStart };
  const said = { headers: request.headers, body };
  const handshake = findHandshake(signature, said);
  if (handshake === null) return execute(ctx, reception, deliveryIdOf(signature, said));
  const reason = `the sender checks the address (${handshake.kind})`;
  const receipt = await endDelivery(ctx, reception, { outcome: 'answered', reason, run_id: null, key: null });
  return handshake.kind === 'ping' ? receipt : { challenge: handshake.challenge };
}

export interface ReplayOrder extends Pick<Reception, 'asksToStart'> {
  readonly hook: HookKey;
  readonly delivery_id: string;
  /** Its Idempotency-Key. */
  readonly key: string | undefined;
  /** Id of the key or person. */
  readonly by: string;
}

/**
 * Sends a logged delivery again, by the hook as it is now. It starts another run.
 * @throws AppError `not_found`, `state_conflict` when its body was not kept, and as a delivery
 */
export async function replayDelivery(
  ctx: ReceiveCtx,
  { hook, delivery_id: replay_of, key, by, asksToStart }: ReplayOrder,
): Promise<HookReceipt> {
  const row = await requireHook(ctx, hook);
  const { headers, body, bytes } = await requireReceived(ctx, row, replay_of);
  if (body === null)
    throw new AppError(
      'state_conflict',
      `the body of ${replay_of} was not kept: it repeats another delivery, or has more than ${mostKeptBytes} bytes`,
    );
  const received = { delivery_id: newId('received'), headers, body, bytes, replay_of };
  const again = { by, key: key === undefined ? null : JSON.stringify([replay_of, key]) };
  return execute(ctx, { row, received, asksToStart, again }, null);
}
