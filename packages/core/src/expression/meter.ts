/**
 * The work that expressions do, in units. A unit takes about ten nanoseconds: everything that an expression reads or
 * builds is charged, by its true growth. Units are counted and time is not, so that an evaluation ends the same way on
 * every machine. All evaluations of one request draw on one meter.
 */

/** The most units of the meters of their kind. Each is some milliseconds, so that no evaluation holds a process. */
export const workLimits = {
  /** One value of a run, where its worker evaluates it. */
  run: 4_000_000,
  /** All parts of the output of a run, where it is too large as a whole. */
  output: 10_000_000,
  /** A plan: all of its evaluations, between which others are served. */
  plan: 10_000_000,
  /** One of them, with the values that it reads and that are foreseen for it. */
  planned: 1_500_000,
  /** The prices of all calls of a plan. */
  planPrices: 2_000_000,
  /** Any other request to a server: all of its evaluations. */
  request: 1_000_000,
  /** The key of one run's concurrency. */
  key: 100_000,
  /** All prices by the input for one choice of an instance. */
  choice: 300_000,
  /** One of them. */
  price: 100_000,
  /** One of them for an input of usual size, when it is registered. */
  usualPrice: 30_000,
} as const;

/** What is charged. Nothing that is evaluated is free, so long texts of cheap parts end as well. */
export const charges = {
  /** A part of an expression or a template. */
  part: 6,
  /** A filter. */
  filter: 10,
  /** An error, which knows where it comes from. */
  error: 500,
  /** A filter that reads and writes a number, a moment or a duration as text. */
  conversion: 150,
  /** An item that is moved from one list to another. */
  move: 2,
  /** An item that is copied; its members are charged as values. */
  copy: 2,
  /** An item of a list that is flattened. */
  flattened: 4,
  /** Two keys that are compared while a list is sorted. */
  comparison: 4,
  /** A value that is looked at, such as an item or a member; also a comparison of two. */
  value: 10,
  /** A value that is read from text, or written as text. */
  textValue: 25,
  /** Characters that are read, compared or passed on, for one unit. */
  charactersRead: 8,
  /** Characters of a text in which another is searched, and of that one, for one unit. */
  charactersSearched: 2,
  /** Characters that are built for one unit. */
  charactersBuilt: 4,
  /** Characters that are written as JSON text for one unit. */
  charactersEscaped: 2,
} as const;

export class Meter {
  /** Below 0: it has refused work. */
  left: number;
  /** The limit, for people. */
  readonly most: number;
  readonly #given: number;

  constructor(most: number, given = most) {
    this.left = given;
    this.most = most;
    this.#given = given;
  }

  /** The work that was done: what a refused evaluation asked for beyond it was not. */
  get spent(): number {
    return Math.min(this.#given, this.#given - this.left);
  }

  /** The meter of one of several evaluations, which may take so much of what is left; `count` what it has taken. */
  part(most: number): Meter {
    return most <= this.left ? new Meter(most) : new Meter(this.most, Math.max(0, this.left));
  }

  count({ spent }: Meter): void {
    this.left -= spent;
  }
}
