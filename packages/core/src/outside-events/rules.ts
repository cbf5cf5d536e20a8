/**
 * Outside events: which of them a step takes, and how it ends without one. The engine applies the rules to rows, a mock
 * run to memory.
 *
 * - V1 An event is given to every step that waits for its name and key when it comes, if its payload matches the schema
 *   of the step.
 * - V2 It is kept for a day. A step that begins to wait takes the oldest kept event that matches, of those that came
 *   since its run began, and of those that no step has taken. So it does not matter whether an event of a run comes
 *   before or after the step waits, and an old event that another run has does not answer a new run.
 * - V3 A step takes no event that a step before it in its run has taken: a second wait is for a second event.
 * - V4 An event whose payload no waiting step takes is refused to its sender. It is neither given nor kept.
 */
import type { AwaitedEvent } from '../contracts/outside-event.ts';
import type { StepDefinition } from '../contracts/pipeline.ts';
import type { Failure, Json } from '../contracts/primitives.ts';
import { EventKey } from '../contracts/primitives.ts';
import type { CompiledDefinition } from '../definition/compile.ts';
import { describeValue } from '../expression/evaluation.ts';
import type { Evaluated } from '../run/step-rules.ts';

const defaultTimeout = '24h';

/** The time to wait for the event of a step. */
export function eventTimeoutOf({ event }: Pick<StepDefinition, 'event'>): string {
  return event?.timeout ?? defaultTimeout;
}

/** `payment.settled with key "7"` */
export function describeEvent({ name, key }: AwaitedEvent): string {
  return key === '' ? name : `${name} with key ${JSON.stringify(key)}`;
}

/** The key of an event. @param value of its template */
export function toEventKey(value: Evaluated<Json>): Evaluated<string> {
  if ('error' in value) return { error: { ...value.error, message: `event.key: ${value.error.message}` } };
  const key = value.value;
  const text = typeof key === 'object' ? null : String(key);
  if (text !== null && EventKey.safeParse(text).success && !/\0|\p{Surrogate}/u.test(text))
    return { value: text };
  const seen = text === null ? describeValue(key) : `one of ${text.length} characters`;
  const message = `event.key: a text of 1 to 256 characters, a number or a boolean is needed, not ${seen}`;
  return { error: { code: 'expression_unresolved', message } };
}

/** How a step ends whose event has not come in time. */
export function endWithoutEvent(
  definition: StepDefinition,
  awaited: AwaitedEvent,
):
  | { readonly state: 'succeeded'; readonly output: null }
  | { readonly state: 'failed'; readonly error: Failure } {
  if (definition.event?.on_timeout === 'continue') return { state: 'succeeded', output: null };
  const message = `no event ${describeEvent(awaited)} came within ${eventTimeoutOf(definition)}`;
  return { state: 'failed', error: { code: 'step_timeout', message } };
}

/** V3: the ids of all steps that must end before a step begins. */
export function listStepsBefore({ steps, indexOf }: CompiledDefinition, stepId: string): string[] {
  const before = new Set<number>();
  const open = [indexOf.get(stepId) ?? -1];
  for (let index = open.pop(); index !== undefined; index = open.pop()) {
    for (const other of steps[index]?.dependencies ?? []) {
      if (before.has(other)) continue;
      before.add(other);
      open.push(other);
    }
  }
  return [...before].sort((a, b) => a - b).map((index) => steps[index]?.definition.id ?? '');
}
