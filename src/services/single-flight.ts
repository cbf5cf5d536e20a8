/**
 * Joins the work of that name that is under way, or begins it, so that this process does it once however many ask at
 * the same time. It is forgotten when it ends: whoever asks then begins it anew.
 */
export function joinFlight<Result>(
  underWay: Map<string, Promise<Result>>,
  name: string,
  begin: () => Promise<Result>,
): Promise<Result> {
  const known = underWay.get(name);
  if (known !== undefined) return known;
  const flight = begin().finally(() => underWay.delete(name));
  underWay.set(name, flight);
  return flight;
}
