/**
 * Calls of models for the protocols that programs speak: each is an ordinary direct call, with its routing, budget and
 * decision. A stream is answered from the first part on, so until then a call may still fail over to another instance,
 * and its error has a status of its own.
 */
import { Readable } from 'node:stream';
import type { ProjectKey } from '@capstan/core/call/caller';
import type { CallForms } from '@capstan/core/call/types';
import { type CancelSignal, CancelSource, onCancel } from '@capstan/core/cancellation';
import type { ExecAnswer, ExecRequest } from '@capstan/core/contracts/decision';
import { type ModelChoice, ModelResult } from '@capstan/core/contracts/openai';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { formatDuration } from '@capstan/core/duration';
import { AppError, toAppError } from '@capstan/core/errors/app-error';
import { stoppedComment } from '@capstan/core/model-protocols/cut-answer';
import { type AnswerWriter, choicesOf, wholeDeltas } from '@capstan/core/model-protocols/model-answer';
import { createToldAnswer } from '@capstan/core/model-protocols/told-answer';
import { restoreDelta, restoreResult } from '@capstan/core/model-protocols/translation';
import type { SpokenProtocol } from '@capstan/core/routing/types';
import type { OnDelta } from '../../parts/calls/routed-call.ts';
import { decisionIdOf } from '../../parts/ids.ts';
import type { Idempotency } from '../idempotency.ts';
import { type PreparedCall, readNativeOutput, readNativePart } from './client-protocol.ts';
import { type CallCtx, chosenOnBudget, makeDirectCall } from './direct-calls.ts';
import { type SilenceTerms, watchSilence } from './stream-silence.ts';

export interface CallTerms extends SilenceTerms {
  readonly caller: ProjectKey;
  /** Receives why the answer is not cached. */
  readonly onNotKept?: ((reason: string) => void) | undefined;
  /** The constraints of the route, as headers give them. */
  readonly constraints: Omit<ExecRequest, 'input'>;
  readonly idempotency: Idempotency | null;
  /** Aborts when the client disconnects; the call is cancelled then. */
  readonly signal: CancelSignal;
}

interface NamedCall {
  readonly capability: string;
  readonly input: JsonObject;
  readonly onDelta?: OnDelta | undefined;
  readonly declaredFields?: readonly string[] | undefined;
  readonly forms?: CallForms | undefined;
  readonly protocol?: SpokenProtocol | undefined;
  readonly explain?: PreparedCall['explain'];
}

interface AnsweredCall {
  readonly output: ExecAnswer['output'];
  readonly routing: ExecAnswer['routing'];
  readonly isReplayed: boolean;
}

/** @throws AppError of a direct call */
export async function callModel(
  ctx: CallCtx,
  { caller, onNotKept, constraints, idempotency, signal }: CallTerms,
  { capability, input, onDelta, declaredFields, forms, protocol, explain = (error) => error }: NamedCall,
): Promise<AnsweredCall> {
  const request: ExecRequest = { input, ...constraints };
  const order = { caller, onNotKept, idempotency, signal };
  const { answer, isReplayed } = await makeDirectCall(ctx, {
    capability,
    request,
    onDelta,
    declaredFields,
    forms,
    protocol,
    ...order,
  }).catch((error: unknown) => {
    throw explain(error);
  });
  if (answer instanceof AppError) throw explain(answer);
  return { output: answer.output, routing: answer.routing, isReplayed };
}

function isAnswer({ text, json, tool_calls }: ModelChoice): boolean {
  return (text ?? json ?? tool_calls) !== undefined;
}

/** @throws AppError `output_invalid` */
function readResult(output: Json, { capability, input: { n } }: NamedCall): ModelResult {
  const { success, data } = ModelResult.safeParse(output);
  const answers = success ? choicesOf(data) : [];
  const wanted = typeof n === 'number' ? n : 1;
  if (success && answers.length === wanted && answers.every(isAnswer)) return data;
  const made = wanted === 1 ? 'text, json or tool_calls' : `${wanted} choices with text, json or tool_calls`;
  throw new AppError(
    'output_invalid',
    `${capability} answered without ${made}, which an answer of a model is made of`,
  );
}

/** The answer of a model: its result, or the body that its provider wrote in the protocol of the client. */
export type ProtocolAnswer =
  | { readonly kind: 'result'; readonly result: ModelResult }
  | { readonly kind: 'native'; readonly response: string | undefined };

export interface AskedModel extends Omit<AnsweredCall, 'output'> {
  readonly answer: ProtocolAnswer;
}

/** @throws AppError of a direct call, `output_invalid` */
export async function askModel(ctx: CallCtx, terms: CallTerms, call: PreparedCall): Promise<AskedModel> {
  // An answer in the provider's own form comes as a whole, so nothing shows what has been used on the way.
  const isWhole = call.protocol !== undefined;
  const constraints = isWhole ? { ...terms.constraints, on_budget: 'refuse' as const } : terms.constraints;
  return readAnswer(await callModel(ctx, { ...terms, constraints }, call), call);
}

function readAnswer({ output, ...facts }: AnsweredCall, call: PreparedCall): AskedModel {
  const native = readNativeOutput(output);
  if (native !== null) return { answer: { kind: 'native', response: native.response }, ...facts };
  const result = restoreResult(readResult(output, call), call.toolNames);
  return { answer: { kind: 'result', result }, ...facts };
}

/** A client that reads slower than the model writes is cut off when this much of the answer waits for it. */
const mostUnreadBytes = 1_048_576;

/** The decision of the call, and the one of the original call if the answer comes from the cache. */
type BegunRouting = Pick<ExecAnswer['routing'], 'decision_id' | 'cached'>;

export interface StreamedModel {
  /** Server-sent events. */
  readonly events: Readable;
  /** The facts of the call when its answer begins; null: it began with bytes that keep the connection alive. */
  readonly routing: BegunRouting | null;
  /** Fields of the request that the model did not get. */
  readonly dropped: readonly string[];
}

interface AnswerEvents {
  readonly events: Readable;
  /** Resolves with the first bytes: the answer has begun. */
  readonly begun: Promise<BegunRouting | null>;
  /** Whether bytes were sent. */
  hasBegun(): boolean;
  /** Whether a part of the answer was sent. */
  hasPart(): boolean;
  /** Sends bytes that programs skip. */
  keepAlive(bytes: string): void;
  /** Sends events of the answer; the first ones after those that open it. */
  send(events: readonly string[], routing: BegunRouting): void;
  /** Sends what ends the stream. */
  close(last: readonly string[]): void;
}

/** Parts that follow one another within this time are sent together: each write costs as much as making several parts. */
const togetherMs = 8;

/** Sends the first part at once, and then what has come every `togetherMs`. `flush` sends the waiting parts. */
export function createJoin(events: Readable) {
  let waiting = '';
  let pause: NodeJS.Timeout | null = null;
  const flush = (): void => {
    if (events.destroyed || waiting === '') return;
    events.push(waiting);
    waiting = '';
    if (events.readableLength > mostUnreadBytes) events.destroy();
  };
  const send = (): void => {
    flush();
    pause = setTimeout(() => {
      pause = null;
      if (waiting !== '' && !events.destroyed) send();
    }, togetherMs);
  };
  const write = (some: readonly string[]): void => {
    if (waiting === '' && pause === null) queueMicrotask(send);
    for (const event of some) waiting += event;
  };
  return { write, flush };
}

/** @param onLeft the client reads no more */
function createAnswerEvents({ open }: Pick<AnswerWriter, 'open'>, onLeft: () => void): AnswerEvents {
  const events = new Readable({
    read: () => undefined,
    destroy: (error, done) => {
      onLeft();
      done(error);
    },
  });
  const { write, flush } = createJoin(events);
  let begin: (routing: BegunRouting | null) => void = () => undefined;
  const begun = new Promise<BegunRouting | null>((resolve) => {
    begin = resolve;
  });
  const sent = { bytes: false, parts: false };
  return {
    events,
    begun,
    hasBegun: () => sent.bytes,
    hasPart: () => sent.parts,
    keepAlive: (bytes) => {
      write([bytes]);
      sent.bytes = true;
      begin(null);
    },
    send: (some, routing) => {
      if (some.length === 0) return;
      if (!sent.parts) write(open());
      write(some);
      Object.assign(sent, { bytes: true, parts: true });
      begin(routing);
    },
    close: (last) => {
      write(last);
      flush();
      if (!events.destroyed) events.push(null);
    },
  };
}

interface StreamedCall {
  readonly call: PreparedCall;
  readonly writer: AnswerWriter;
  /** The body of an error that ends the stream. */
  readonly toError: (error: AppError) => JsonObject;
  /** Receives the result before the stream ends, which waits for it. */
  readonly onResult?: (result: ModelResult, routing: ExecAnswer['routing']) => Promise<void>;
}

/** Passes on the events of an instance that speaks the protocol of the client. */
function createNativeWriter({ fail }: AnswerWriter) {
  let end = '';
  // The stream may have paused or broken within an event.
  const isBetweenEvents = (): boolean => end === '' || /(?:\n\n|\r\n\r\n)$/.test(end);
  const part: AnswerWriter['part'] = (delta) => {
    const events = readNativePart(delta);
    if (events === null || events === '') return [];
    end = (end + events).slice(-4);
    return [events];
  };
  return {
    isBetweenEvents,
    part,
    fail: (error: JsonObject) => [...(isBetweenEvents() ? [] : ['\n\n']), ...fail(error)],
  };
}

/** Writes the events of an answer, in the form that the instance of the last attempt gives it. */
function createPartWriter({ call, writer }: Pick<StreamedCall, 'call' | 'writer'>) {
  const native = createNativeWriter(writer);
  const told = createToldAnswer();
  const writeParts = (deltas: readonly Json[]): string[] =>
    deltas.flatMap((delta) => writer.part(restoreDelta(delta, call.toolNames)));
  return {
    open: () => (call.isNative() ? [] : writer.open()),
    part: (delta: Json): readonly string[] => {
      if (call.isNative()) return native.part(delta);
      told.note(delta);
      return writeParts([delta]);
    },
    fail: (error: JsonObject) => (call.isNative() ? native : writer).fail(error),
    mayPause: () => native.isBetweenEvents(),
    /**
     * The parts that are missing, and the last events of the stream.
     * @throws AppError `output_invalid` where the parts of the stream differ from the result
     */
    close: ({ answer, routing }: AskedModel, hasBegun: boolean) => {
      if (answer.kind === 'native') {
        if (hasBegun) return { rest: [], last: [] };
        throw new AppError('output_invalid', `${call.capability} answered a stream without its events`);
      }
      const { result } = answer;
      const rest = hasBegun ? told.missing(result) : wholeDeltas(result);
      if (rest === null)
        throw new AppError('output_invalid', 'the result is another one than the parts of the stream');
      return { rest: writeParts(rest), last: writer.close(result, routing.settled_usd ?? 0) };
    },
  };
}

/**
 * @returns once the answer has begun
 * @throws AppError as `askModel`, until then
 */
export async function streamModel(
  ctx: CallCtx,
  terms: CallTerms,
  { call, writer, toError, onResult }: StreamedCall,
): Promise<StreamedModel> {
  const stop = new CancelSource();
  onCancel(terms.signal, () => stop.abort(terms.signal.reason));
  const parts = createPartWriter({ call, writer });
  const answer = createAnswerEvents(parts, () => stop.abort('cancelled'));
  const silence = watchSilence(terms, {
    onPause: () => {
      if (parts.mayPause()) answer.keepAlive(writer.keepAlive);
    },
    onIdle: () => stop.abort('cancelled'),
  });
  const onDelta: OnDelta = (delta, attemptId) => {
    silence.note();
    answer.send(parts.part(delta), { decision_id: decisionIdOf(attemptId) });
  };
  const on_budget = terms.constraints.on_budget ?? (await chosenOnBudget(ctx, terms.caller)) ?? 'stop';
  const constraints = { ...terms.constraints, on_budget };
  const asked = callModel(
    ctx,
    { ...terms, constraints, idempotency: null, signal: stop },
    { ...call, onDelta },
  );
  const ended = asked
    .then((answered) => endStream({ answer, parts, onResult }, readAnswer(answered, call)))
    .catch((error: unknown) => {
      const shown = silence.isIdle() ? silentTooLong(terms) : error;
      if (!answer.hasBegun()) throw shown;
      answer.close(parts.fail(toError(toAppError(shown))));
      return answer.begun;
    })
    .finally(silence.end);
  const routing = await Promise.race([answer.begun, ended]);
  return { events: answer.events, routing, dropped: call.dropped() };
}

function silentTooLong({ idleMs = 0 }: SilenceTerms): AppError {
  return new AppError('attempt_timeout', `the model was silent for ${formatDuration(idleMs)}`);
}

interface EndingStream extends Pick<StreamedCall, 'onResult'> {
  readonly answer: AnswerEvents;
  readonly parts: ReturnType<typeof createPartWriter>;
}

async function endStream(
  { answer: { hasPart, send, close }, parts, onResult }: EndingStream,
  asked: AskedModel,
): Promise<BegunRouting> {
  const { answer, routing } = asked;
  const { rest, last } = parts.close(asked, hasPart());
  send(rest, routing);
  if (answer.kind === 'result') await onResult?.(answer.result, routing);
  if (answer.kind === 'result' && routing.stopped !== undefined) send([stoppedComment], routing);
  send(last, routing);
  close([]);
  return routing;
}
