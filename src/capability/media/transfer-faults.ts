/** What went wrong with a file: whether the input is to blame, or the store is away and the call should come again. */
import { CallFailure } from '../call-failure.ts';

/** An API or a bucket said no. */
export class RefusedTransfer extends Error {
  override readonly name = 'RefusedTransfer';
  readonly status: number;
  /** The answer's body. */
  readonly text: string;

  constructor(message: string, answer: { readonly status: number; readonly text: string }) {
    super(message);
    this.status = answer.status;
    this.text = answer.text;
  }
}

const passingStatuses: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** `fetch` hides what went wrong on the way behind an error of its own. */
function isOfWay(thrown: Error): boolean {
  return thrown instanceof TypeError && thrown.cause instanceof Error;
}

function isAway(thrown: unknown): thrown is Error {
  if (!(thrown instanceof Error)) return false;
  if (thrown instanceof RefusedTransfer) return passingStatuses.has(thrown.status);
  return isOfWay(thrown) || Reflect.get(thrown, 'code') === 'unavailable';
}

const retryAfterS = 5;

/** @throws CallFailure 503 when the store is away, which is no fault of the input; else what was thrown */
export async function moveFile<Result>(signal: AbortSignal, move: () => Promise<Result>): Promise<Result> {
  try {
    return await move();
  } catch (thrown) {
    if (signal.aborted || !isAway(thrown)) throw thrown;
    const reason =
      thrown.cause instanceof Error ? `${thrown.message}: ${thrown.cause.message}` : thrown.message;
    throw new CallFailure(503, `the media store is away: ${reason}`, { retryAfterS, cause: thrown });
  }
}
