/**
 * Steps whose calls this process makes and that may be called off meanwhile. Temporal delivers a cancel with the next
 * heartbeat, which is seconds away; the end of a step that was called off is in its row before that. So the process
 * looks at the rows of these steps, in one statement for all of them, as long as there are any.
 */
import { type CancelSignal, CancelSource, onCancel } from '@capstan/core/cancellation';
import { LiveList } from '@capstan/core/live-list';
import type { StepItemKey } from '../../db/attempt/attempt.ts';
import { listCalledOff } from '../../db/step/step-progress.ts';
import type { PartBase } from '../part.ts';

const lookMs = 200;

interface WatchedStep {
  readonly key: StepItemKey;
  readonly source: CancelSource;
}

export class CalledOffSteps {
  readonly #base: PartBase;
  readonly #watched = new LiveList<WatchedStep>();
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> | null = null;

  constructor(base: PartBase) {
    this.#base = base;
  }

  /** Does the work of a step with a signal that also aborts when the step is called off. */
  async watch<Result>(
    key: StepItemKey,
    signal: CancelSignal,
    work: (signal: CancelSignal) => Promise<Result>,
  ): Promise<Result> {
    const source = new CancelSource();
    const stopListening = onCancel(signal, () => source.abort(signal.reason));
    const entry = this.#watched.add({ key, source });
    this.#arm();
    try {
      return await work(source);
    } finally {
      this.#watched.remove(entry);
      stopListening();
    }
  }

  async close(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#looking;
  }

  #arm(): void {
    if (this.#timer !== null || this.#looking !== null || this.#watched.size === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#looking = this.#look();
    }, lookMs).unref();
  }

  async #look(): Promise<void> {
    const { db, logger } = this.#base;
    const steps = this.#watched.members();
    const keys = steps.map(({ key }) => key);
    try {
      for (const place of await listCalledOff(db, keys)) steps[place]?.source.abort('cancelled');
    } catch (error) {
      logger.warn({ err: error }, 'steps that may be called off could not be read'); // a heartbeat brings the cancel
    }
    this.#looking = null;
    this.#arm();
  }
}
