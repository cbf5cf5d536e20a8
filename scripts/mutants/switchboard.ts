/** Which mutant is on, which were met, and an end for loops that a mutant has made endless. */
export interface Switchboard {
  /** Null = none. */
  on: number | null;
  /** Mutants that are met while none is on. */
  readonly met: Set<number>;
  steps: number;
  mostSteps: number;
  at(id: number): boolean;
}

class TooManySteps extends Error {}

export function createSwitchboard(): Switchboard {
  return {
    on: null,
    met: new Set(),
    steps: 0,
    mostSteps: Number.POSITIVE_INFINITY,
    at(id) {
      if (this.on === null) this.met.add(id);
      if (++this.steps > this.mostSteps) throw new TooManySteps(`more than ${this.mostSteps} steps`);
      return this.on === id;
    },
  };
}

declare global {
  var $mutants: Switchboard;
}
