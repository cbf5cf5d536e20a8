/**
 * One HTTP request and its whole answer, by undici's dispatch: a stream per answer would take longer than the rest of a
 * small call.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { type CancelSignal, onCancel } from '@capstan/core/cancellation';
import type { Dispatcher } from 'undici';

export interface InstanceAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Null: more than was asked for; the connection was closed instead of reading on. */
  readonly body: Buffer | null;
}

/** The status and the headers of an answer, before its body. */
export type InstanceAnswerHead = Omit<InstanceAnswer, 'body'>;

/** Removes the lines that an answer reports on its way. */
export interface LineFilter {
  /** @returns what stays; null beyond the bound */
  take(chunk: Buffer): Buffer | null;
  /** After the last chunk. */
  rest(): Buffer;
}

export interface SendOptions {
  readonly signal: CancelSignal;
  /** How many bytes of its body are wanted; 0: none, even if it is empty. */
  readonly limitOf: (head: InstanceAnswerHead) => number;
  /** Filters the lines of an answer that reports progress. Default: no answer does. */
  readonly linesOf?: (head: InstanceAnswerHead) => LineFilter | null;
}

const unwanted = 'the request is not wanted any more';

class Overlong extends Error {}

/** @throws what undici throws, and an Error when `signal` is aborted; the request is not sent or its connection closed */
export function sendRequest(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  options: SendOptions,
): Promise<InstanceAnswer> {
  return new Promise((resolve, reject) => {
    if (options.signal.aborted) reject(new Error(unwanted));
    else dispatcher.dispatch(request, new WholeReader(options, resolve, reject));
  });
}

/**
 * Reads one answer whole. It holds the functions of the promise itself: closures around them stayed in memory until a
 * full collection, each with the call that it was made for.
 */
class WholeReader implements Dispatcher.DispatchHandler {
  readonly #options: SendOptions;
  readonly #resolve: (answer: InstanceAnswer) => void;
  readonly #reject: (error: Error) => void;
  readonly #stopListening: () => void;
  readonly #chunks: Buffer[] = [];
  #lines: LineFilter | null = null;
  #controller: Dispatcher.DispatchController | null = null;
  #aborted: Error | null = null;
  #head: InstanceAnswerHead | null = null;
  #limit = 0;
  #size = 0;

  constructor(
    options: SendOptions,
    resolve: (answer: InstanceAnswer) => void,
    reject: (error: Error) => void,
  ) {
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#stopListening = onCancel(options.signal, () => this.#abort());
  }

  #abort(): void {
    const error = new Error(unwanted);
    this.#aborted = error;
    this.#controller?.abort(error);
    this.#fail(error); // also when no connection has taken the request yet
  }

  #fail(error: Error): void {
    this.#stopListening();
    this.#reject(error);
  }

  #end(body: Buffer | null): void {
    this.#stopListening();
    const { status, headers } = this.#head as InstanceAnswerHead;
    this.#resolve({ status, headers, body });
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
    const { linesOf, limitOf } = this.#options;
    this.#lines = linesOf?.(this.#head) ?? null;
    this.#limit = limitOf(this.#head);
    if (this.#limit === 0 || Number(headers['content-length'] ?? 0) > this.#limit) this.#refuse(controller);
  }

  onResponseData(controller: Dispatcher.DispatchController, data: Buffer): void {
    const chunk = this.#lines === null ? data : this.#lines.take(data);
    this.#size += chunk?.length ?? 0;
    if (chunk === null || this.#size > this.#limit) this.#refuse(controller);
    else if (chunk.length > 0) this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    const rest = this.#lines?.rest();
    if (rest !== undefined) {
      this.#chunks.push(rest);
      this.#size += rest.length;
    }
    const [first, ...more] = this.#chunks;
    const body = first !== undefined && more.length === 0 ? first : Buffer.concat(this.#chunks, this.#size);
    this.#end(body);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (error instanceof Overlong) this.#end(null);
    else this.#fail(error);
  }

  #refuse(controller: Dispatcher.DispatchController): void {
    controller.abort(new Overlong('more than is wanted'));
  }
}
