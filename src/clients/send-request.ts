/**
 * One HTTP request and its whole answer, by undici's dispatch: a stream per answer would take longer than the rest of a
 * small call.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { type CancelSignal, onCancel } from '../core/cancellation.ts';

export interface InstanceAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Null: more than was asked for; the connection was closed instead of reading on. */
  readonly body: Buffer | null;
}

/** What is known of an answer before its body. */
export type InstanceAnswerHead = Omit<InstanceAnswer, 'body'>;

export interface SendOptions {
  readonly signal: CancelSignal;
  /** How many bytes of its body are wanted; 0: none, even if it is empty. */
  readonly limitOf: (head: InstanceAnswerHead) => number;
}

const unwanted = 'the request is not wanted any more';

class Overlong extends Error {}

/** @throws what undici throws, and an Error when `signal` is aborted; the request is not sent or its connection closed */
export function sendRequest(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { signal, limitOf }: SendOptions,
): Promise<InstanceAnswer> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new Error(unwanted));
    const reader = new WholeReader(limitOf);
    const fail = (error: Error): void => {
      stopListening();
      reject(error);
    };
    const stopListening = onCancel(signal, () => {
      const error = new Error(unwanted);
      reader.abort(error);
      fail(error); // also when no connection has taken the request yet
    });
    reader.onEnd = (answer) => {
      stopListening();
      resolve(answer);
    };
    reader.onFail = fail;
    dispatcher.dispatch(request, reader);
  });
}

class WholeReader implements Dispatcher.DispatchHandler {
  onEnd: (answer: InstanceAnswer) => void = () => undefined;
  onFail: (error: Error) => void = () => undefined;
  readonly #limitOf: SendOptions['limitOf'];
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | null = null;
  #aborted: Error | null = null;
  #head: InstanceAnswerHead | null = null;
  #limit = 0;
  #size = 0;

  constructor(limitOf: SendOptions['limitOf']) {
    this.#limitOf = limitOf;
  }

  abort(error: Error): void {
    this.#aborted = error;
    this.#controller?.abort(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#aborted !== null) controller.abort(this.#aborted);
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200) return; // informational; the answer follows
    this.#head = { status, headers };
    this.#limit = this.#limitOf(this.#head);
    if (this.#limit === 0 || Number(headers['content-length'] ?? 0) > this.#limit) this.#refuse(controller);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > this.#limit) this.#refuse(controller);
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    const [first, ...more] = this.#chunks;
    const body = first !== undefined && more.length === 0 ? first : Buffer.concat(this.#chunks, this.#size);
    this.onEnd({ ...(this.#head as InstanceAnswerHead), body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (error instanceof Overlong) this.onEnd({ ...(this.#head as InstanceAnswerHead), body: null });
    else this.onFail(error);
  }

  #refuse(controller: Dispatcher.DispatchController): void {
    controller.abort(new Overlong('more than is wanted'));
  }
}
