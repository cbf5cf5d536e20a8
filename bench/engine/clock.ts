/** Milliseconds of the machine's steady clock, which all its processes read alike. */
export function readClock(): number {
  return Number(process.hrtime.bigint()) / 1_000_000;
}
