/** Calls of a project, newest first: who paid, what they used, how they ended; and their contents, where they are kept. */

import { outcomeOf } from '@capstan/core/call/call-facts';
import type { CallContent, CallDetail, CallQuery, CallRecord } from '@capstan/core/contracts/call';
import { AppError } from '@capstan/core/errors/app-error';
import { formatNanoUsd, fromNanoUsd } from '@capstan/core/money/nano-usd';
import type { Ctx, ServerCtx } from '../../context.ts';
import { type CallFilter, type CallRow, findCall, listCalls } from '../../db/attempt/call.ts';
import { findContent } from '../../db/attempt/call-content.ts';
import { attemptIdOf, boundsOfIds, decisionIdOf } from '../../parts/ids.ts';
import { asText, toCsvLine } from '../csv.ts';
import { decodeCursor, toPage } from '../cursor.ts';

type PastCtx = Pick<ServerCtx, 'historyDb'>;

function toScopes({ key, user, label, pipeline }: CallQuery): readonly string[] {
  return Object.entries({ key, user, label, pipeline }).flatMap(([kind, value]) =>
    value === undefined ? [] : [`${kind}:${value}`],
  );
}

/** The first moment that ids can hold, and one behind all of them. */
const always = { since: new Date(0), until: new Date('9999-01-01T00:00:00Z') };

function toFilter(query: CallQuery): Omit<CallFilter, 'after' | 'limit'> {
  const { capability, endpoint, model, run_id, direct, outcome } = query;
  const since = query.since === undefined ? undefined : new Date(query.since);
  const until = query.until === undefined ? undefined : new Date(query.until);
  const isBounded = since !== undefined || until !== undefined;
  const ids = isBounded ? boundsOfIds('attempt', since ?? always.since, until ?? always.until) : undefined;
  const fields = { capability, endpoint, model, run_id, direct, outcome };
  return { ...fields, scopes: toScopes(query), since, until, ids };
}

function readScope(scopes: CallRow['scopes'], kind: string): string | null {
  const found = scopes?.find((scope) => scope.startsWith(`${kind}:`));
  return found === undefined ? null : found.slice(kind.length + 1);
}

function labelsOf(scopes: CallRow['scopes']): Record<string, string> {
  const labels = (scopes ?? []).filter((scope) => scope.startsWith('label:'));
  return Object.fromEntries(
    labels.map((scope) => {
      const at = scope.indexOf('=');
      return [scope.slice('label:'.length, at), scope.slice(at + 1)];
    }),
  );
}

function toCall(row: CallRow): CallRecord {
  const { attempt_id, started_at, settled_nano, scopes, state, error, ...facts } = row;
  return {
    decision_id: decisionIdOf(attempt_id),
    at: started_at.toISOString(),
    capability: facts.capability,
    endpoint: facts.endpoint,
    outcome: outcomeOf({ state, error_code: error?.code ?? null }),
    error,
    duration_ms: facts.duration_ms,
    cost_usd: settled_nano === null ? null : fromNanoUsd(BigInt(settled_nano)),
    certainty: facts.certainty,
    model: facts.model,
    tokens: facts.tokens,
    key_id: readScope(scopes, 'key'),
    user: readScope(scopes, 'user'),
    labels: labelsOf(scopes),
    run_id: facts.run_id,
    pipeline: readScope(scopes, 'pipeline'),
    step_id: facts.step_id,
    item: facts.item,
  };
}

/** Lists calls, newest first. */
export async function readCalls({ historyDb }: PastCtx, projectId: string, query: CallQuery) {
  const { limit, cursor } = query;
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  const rows = await listCalls(historyDb, projectId, { ...toFilter(query), after, limit: limit + 1 });
  return toPage(rows, limit, { key: ({ attempt_id }) => attempt_id, item: toCall });
}

const columns: Readonly<
  Record<string, (call: CallRecord, row: CallRow) => string | number | null | undefined>
> = {
  decision_id: (call) => call.decision_id,
  at: (call) => call.at,
  capability: (call) => call.capability,
  endpoint: (call) => call.endpoint,
  outcome: (call) => call.outcome,
  error: (call) => call.error?.code,
  duration_ms: (call) => call.duration_ms,
  cost_usd: (_, { settled_nano }) => (settled_nano === null ? null : formatNanoUsd(BigInt(settled_nano))),
  certainty: (call) => call.certainty,
  model: (call) => asText(call.model ?? ''),
  input_tokens: (call) => call.tokens?.input,
  output_tokens: (call) => call.tokens?.output,
  cached_read_tokens: (call) => call.tokens?.cached_read,
  cached_write_tokens: (call) => call.tokens?.cached_write,
  reasoning_tokens: (call) => call.tokens?.reasoning,
  key_id: (call) => call.key_id,
  user: (call) => asText(call.user ?? ''),
  labels: ({ labels }) =>
    asText(
      Object.entries(labels)
        .map(([name, value]) => `${name}=${value}`)
        .join(' '),
    ),
  run_id: (call) => call.run_id,
  pipeline: (call) => call.pipeline,
  step_id: (call) => call.step_id,
};

const csvPage = 1_000;

/** Pieces of RFC 4180 text, the header line first. The query's page size and cursor are ignored. */
export async function* exportCalls(
  { historyDb }: PastCtx,
  projectId: string,
  query: CallQuery,
): AsyncGenerator<string, void, undefined> {
  yield toCsvLine(Object.keys(columns));
  const filter = toFilter(query);
  let after: string | undefined;
  for (;;) {
    const rows = await listCalls(historyDb, projectId, { ...filter, after, limit: csvPage });
    yield rows
      .map((row) => [toCall(row), row] as const)
      .map(([call, row]) => toCsvLine(Object.values(columns).map((read) => String(read(call, row) ?? ''))))
      .join('');
    if (rows.length < csvPage) return;
    after = rows.at(-1)?.attempt_id;
  }
}

function missing(decisionId: string): AppError {
  return new AppError('not_found', `there is no call ${decisionId}, or it is no longer kept`);
}

/** @throws AppError `not_found` */
export async function readCall(
  { db }: Pick<Ctx, 'db'>,
  projectId: string,
  decisionId: string,
): Promise<CallDetail> {
  const row = await findCall(db, projectId, attemptIdOf(decisionId));
  if (row === undefined) throw missing(decisionId);
  const { attempt_id, number, pieces, cached_from, has_content } = row;
  const toUsd = (nano: string): number => fromNanoUsd(BigInt(nano));
  return {
    ...toCall(row),
    attempt_id,
    number,
    reserved_usd: toUsd(row.reserved_nano),
    grown_usd: toUsd(row.grown_nano),
    pieces,
    cached_from: cached_from === null ? null : decisionIdOf(cached_from.attempt_id),
    saved_usd: toUsd(row.saved_nano),
    has_content,
  };
}

/** @throws AppError `not_found` where the project does not keep it */
export async function readCallContent(
  { db }: Pick<Ctx, 'db'>,
  projectId: string,
  decisionId: string,
): Promise<CallContent> {
  const row = await findContent(db, projectId, attemptIdOf(decisionId));
  if (row === undefined)
    throw new AppError('not_found', `the contents of the call ${decisionId} are not kept`);
  const { content, deleted_at } = row;
  return { decision_id: decisionId, ...content, deleted_at: deleted_at.toISOString() };
}
