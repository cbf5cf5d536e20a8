/**
 * Watches what a call uses while it runs, by the parts of its answer or by its time, so that its hold grows with it. When
 * its budgets have no more room, the call is stopped: its connection is closed, and what it has used is settled. The
 * answer of a model may end there.
 */
import type { SentRequest } from '@capstan/core/call/drive-call';
import type { CallOutcome } from '@capstan/core/call/outcome';
import { tokensOfPart } from '@capstan/core/call/seen-use';
import { type CancelSignal, CancelSource, onCancel } from '@capstan/core/cancellation';
import type { ClientProtocol } from '@capstan/core/contracts/model-protocol';
import type { Json } from '@capstan/core/contracts/primitives';
import { type CutAnswer, createCutAnswer } from '@capstan/core/model-protocols/cut-answer';
import type { GrowingCall } from '@capstan/core/money/holds';
import { isModel } from '@capstan/core/telemetry/gen-ai';
import type { Ctx } from '../../context.ts';
import type { CallRequest, Claimed } from '../../parts/calls/routed-call.ts';

interface MeteredRequest {
  readonly request: Pick<CallRequest, 'route'>;
  readonly claimed: Pick<Claimed, 'claim' | 'instance'>;
  readonly priced: GrowingCall;
  /** The protocol of the parts of the answer; null: they are in the neutral form. */
  readonly protocol: ClientProtocol | null;
}

const tickMs = 250;
/** Ends after which the instance may not have seen that its connection is closed. */
const mayContinue: ReadonlySet<CallOutcome['kind']> = new Set(['lost', 'abandoned']);

/** A call in flight whose cost is seen on its way. A hold of its worst case never grows, and is never too low. */
export class MeteredCall {
  /** Aborts the request when the call is cancelled or stopped. */
  readonly signal: CancelSource;
  readonly #release: () => void;
  readonly #hold: ReturnType<Ctx['holds']['open']>;
  readonly #isTimed: boolean;
  /** Null: the answer of a stopped call is of no use. */
  readonly #cut: CutAnswer | null;
  #tokens = 0;
  #mustEnd = false;

  constructor({ holds }: Pick<Ctx, 'holds'>, call: MeteredRequest, signal: CancelSignal) {
    const { request, claimed, priced, protocol } = call;
    const { capability, onBudget } = request.route;
    this.signal = new CancelSource();
    this.#isTimed = claimed.instance.cost_type === 'per_second';
    this.#cut = onBudget === 'stop' && isModel(capability) ? createCutAnswer(protocol) : null;
    this.#hold = holds.open(claimed.claim, priced, () => {
      this.#mustEnd = true;
      this.#endIfPossible();
    });
    const beganAt = performance.now();
    const use = (): void => this.#hold.use(performance.now() - beganAt);
    const tick = this.#isTimed ? setInterval(use, tickMs).unref() : undefined;
    const stopListening = onCancel(signal, () => this.signal.abort(signal.reason));
    this.#release = () => {
      clearInterval(tick);
      stopListening();
    };
  }

  /** @param part of the result */
  note(part: Json): void {
    this.#cut?.note(part);
    if (!this.#isTimed) {
      this.#tokens += tokensOfPart(part);
      this.#hold.use(this.#tokens);
    }
    this.#endIfPossible();
  }

  /** @param passOn receives the parts that end the answer of a stopped call */
  end(sent: SentRequest, passOn: ((part: Json) => void) | undefined): SentRequest {
    this.#release();
    this.#hold.end();
    const { held } = this.#hold;
    const most = mayContinue.has(sent.outcome.kind) ? held : this.#hold.most;
    const isStopped = this.#mustEnd && sent.outcome.kind === 'cancelled';
    if (!isStopped) return { ...sent, held, most };
    const cut = this.#cut?.end() ?? null;
    if (cut === null) return { ...sent, outcome: { kind: 'exhausted' }, held, most };
    for (const part of cut.parts) passOn?.(part);
    return { ...sent, outcome: { kind: 'answered', body: cut.output }, held, most, isStopped };
  }

  #endIfPossible(): void {
    if (this.#mustEnd && this.#cut?.mayEnd() !== false) this.signal.abort('cancelled');
  }
}
