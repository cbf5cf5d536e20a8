/** `Prefer: wait=30` (RFC 7240): seconds to hold the answer back for a result; null when it is not asked for. */
export function readWait(prefer: string | undefined, maxSeconds: number): number | null {
  const seconds = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i.exec(prefer ?? '')?.[1];
  return seconds === undefined ? null : Math.min(Number(seconds), maxSeconds);
}
