/** One lookup, or one call, for all of this process who want the same at the same time; the others wait in memory. */
export interface Flight<Result> {
  /** Null: it came to nothing. */
  readonly ended: Promise<Result | null>;
  /** Only the first one counts. */
  readonly end: (result: Result | null) => void;
}

export interface SharedFlights<Result> {
  /** The flight under way, or a new one of the caller's, which must end it. */
  join(name: string): { readonly flight: Flight<Result>; readonly isOwn: boolean };
}

export function createSharedFlights<Result>(): SharedFlights<Result> {
  const flights = new Map<string, Flight<Result>>();
  const open = (name: string): Flight<Result> => {
    let resolve: (result: Result | null) => void = () => undefined;
    const ended = new Promise<Result | null>((tell) => {
      resolve = tell;
    });
    const end = (result: Result | null): void => {
      if (flights.get(name) === flight) flights.delete(name);
      resolve(result);
    };
    const flight: Flight<Result> = { ended, end };
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
