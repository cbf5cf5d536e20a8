/** Every state of a machine that its events reach. */

export interface Machine<State, Event, Effect> {
  readonly starts: readonly State[];
  /** The events to try, also those that the state ignores. */
  readonly events: readonly Event[];
  /** Must not change the state that it is given. */
  readonly next: (state: State, event: Event) => { readonly state: State; readonly effect: Effect };
  readonly isOver: (state: State) => boolean;
}

export interface Transition<State, Event, Effect> {
  readonly before: State;
  readonly event: Event;
  readonly after: State;
  readonly effect: Effect;
}

/** States with equal texts are one. */
function keyOf(state: unknown): string {
  return JSON.stringify(state, (_, value) =>
    value instanceof Map || value instanceof Set ? [...value] : value,
  );
}

/** Breadth first, so that the order of transitions is that of a short story. */
export function explore<State, Event, Effect>({
  starts,
  events,
  next,
  isOver,
}: Machine<State, Event, Effect>): Transition<State, Event, Effect>[] {
  const transitions: Transition<State, Event, Effect>[] = [];
  const open = [...starts];
  const known = new Set(open.map(keyOf));
  for (const before of open) {
    if (isOver(before)) continue;
    for (const event of events) {
      const { state: after, effect } = next(before, event);
      transitions.push({ before, event, after, effect });
      const key = keyOf(after);
      if (known.has(key)) continue;
      known.add(key);
      open.push(after);
    }
  }
  return transitions;
}
