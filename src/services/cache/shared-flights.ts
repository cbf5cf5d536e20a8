/** One lookup, or one call, for all of this process who want the same at the same time; the others wait in memory. */
export interface Flight<Result> {
  /** Null: it came to nothing. Rejects: whether there is a result could not be said. */
  readonly ended: Promise<Result | null>;
  /** Only the first one counts. */
  readonly end: (result: Result | null) => void;
  /** Instead of an end. */
  readonly fail: (error: unknown) => void;
}

export interface SharedFlights<Result> {
  /** The flight under way, or a new one of the caller's, which must end it. */
  join(name: string): { readonly flight: Flight<Result>; readonly isOwn: boolean };
}

function ignore(): void {}

export function createSharedFlights<Result>(): SharedFlights<Result> {
  const flights = new Map<string, Flight<Result>>();
  const open = (name: string): Flight<Result> => {
    let [resolve, reject]: [(result: Result | null) => void, (error: unknown) => void] = [ignore, ignore];
    const ended = new Promise<Result | null>((tell, refuse) => {
      [resolve, reject] = [tell, refuse];
    });
    ended.catch(ignore); // perhaps nobody waits for it
    const leave = (): void => {
      if (flights.get(name) === flight) flights.delete(name);
    };
    const end = (result: Result | null): void => {
      leave();
      resolve(result);
    };
    const fail = (error: unknown): void => {
      leave();
      reject(error);
    };
    const flight: Flight<Result> = { ended, end, fail };
    flights.set(name, flight);
    return flight;
  };
  return {
    join: (name) => {
      const known = flights.get(name);
      return known === undefined ? { flight: open(name), isOwn: true } : { flight: known, isOwn: false };
    },
  };
}
