/** The outside events of a local run, by the rules V1 to V4. */
import { type AwaitedEvent, eventKeptMs } from '../../contracts/outside-event.ts';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { parseDuration } from '../../duration.ts';
import { summarizeFindings } from '../../json/values.ts';
import { describeEvent } from '../../outside-events/rules.ts';
import { type CompiledSchema, createSchemaCompiler } from '../../schemas/schema-compiler.ts';
import { MockFault, type Mocks } from '../mocks.ts';
import type { VirtualTime } from '../virtual-time.ts';

export interface MockEvent extends AwaitedEvent {
  readonly payload: Json;
  /** Unix time, ms. */
  readonly at: number;
  isTaken: boolean;
}

/** A step that waits for an event. */
export interface EventWait extends AwaitedEvent {
  /** Unix time, ms. */
  readonly dueAt: number;
  /** The event that it has taken; null = none so far. */
  event: MockEvent | null;
}

interface ListeningStep {
  readonly wait: EventWait;
  readonly findFaults: CompiledSchema;
  readonly wake: () => void;
}

export interface AskedEvent extends AwaitedEvent {
  /** Of the step's payload. */
  readonly schema: JsonObject;
  readonly dueAt: number;
  /** When the run of the step began. */
  readonly since: number;
  /** V3 */
  readonly takenBefore: ReadonlySet<MockEvent>;
  readonly wake: () => void;
}

export interface MockEvents {
  /** Begins a wait, which a kept event may end at once. */
  wait(asked: AskedEvent): EventWait;
  /** Ends a wait whose step is given up. */
  leave(wait: EventWait): void;
}

/** Events that came, and the steps that wait. */
class Mailbox implements MockEvents {
  readonly #kept: MockEvent[] = [];
  readonly #waiting = new Map<EventWait, ListeningStep>();
  readonly #compiler = createSchemaCompiler();
  readonly #time: Pick<VirtualTime, 'now'>;

  constructor(time: Pick<VirtualTime, 'now'>) {
    this.#time = time;
  }

  /** V1 and V4 */
  receive(event: MockEvent): void {
    const waiting = [...this.#waiting.values()].filter(
      ({ wait }) => wait.name === event.name && wait.key === event.key && event.at < wait.dueAt,
    );
    const takers = waiting.filter(({ findFaults }) => findFaults(event.payload).length === 0);
    const [refusing] = waiting;
    if (refusing !== undefined && takers.length === 0) throw refuse(event, refusing);
    this.#kept.push(event);
    for (const { wait, wake } of takers) {
      take(wait, event);
      this.#waiting.delete(wait);
      wake();
    }
  }

  wait({ name, key, schema, dueAt, wake, ...asked }: AskedEvent): EventWait {
    const wait: EventWait = { name, key, dueAt, event: null };
    const findFaults = this.#compiler.compile(schema);
    const event = this.#kept.find(
      (one) =>
        one.name === name &&
        one.key === key &&
        this.#isOffered(one, asked) &&
        findFaults(one.payload).length === 0,
    );
    if (event === undefined) this.#waiting.set(wait, { wait, findFaults, wake });
    else take(wait, event);
    return wait;
  }

  leave(wait: EventWait): void {
    this.#waiting.delete(wait);
  }

  /** V2 and V3 */
  #isOffered(event: MockEvent, { since, takenBefore }: Pick<AskedEvent, 'since' | 'takenBefore'>): boolean {
    const isFresh = event.at + eventKeptMs > this.#time.now();
    return isFresh && (!event.isTaken || event.at >= since) && !takenBefore.has(event);
  }
}

function take(wait: EventWait, event: MockEvent): void {
  event.isTaken = true;
  wait.event = event;
}

/** The events of the mocks come after the beginning of the run. */
export function createMockEvents({ events = [] }: Pick<Mocks, 'events'>, time: VirtualTime): MockEvents {
  const mailbox = new Mailbox(time);
  for (const { name, key = '', after = '0s', payload = null } of events) {
    const at = time.now() + parseDuration(after);
    time.at(at, () => mailbox.receive({ name, key, payload, at, isTaken: false }));
  }
  return mailbox;
}

/** The API would refuse it. */
function refuse(event: MockEvent, { findFaults }: ListeningStep): MockFault {
  const seen = summarizeFindings(findFaults(event.payload));
  return new MockFault(`the event ${describeEvent(event)} does not match the schema of its step: ${seen}`);
}
