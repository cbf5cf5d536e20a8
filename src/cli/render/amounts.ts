/** Money, durations, sizes and ages for people. */

/** `$0`, `$0.0012`, `$0.25`, `$12.50`: never an exponent, never a false zero. */
export function formatUsd(usd: number): string {
  if (usd === 0) return '$0';
  if (usd >= 1) return `$${usd.toFixed(2)}`;
  if (usd < 1e-9) return '<$0.000000001';
  const leadingZeros = Math.max(0, -Math.floor(Math.log10(usd)) - 1);
  const digits = usd.toFixed(Math.min(9, Math.max(4, leadingZeros + 2)));
  return `$${digits.replace(/(\.\d\d\d*?)0+$/, '$1')}`;
}

/** `12ms`, `1.2s`, `1m04s`, `2h03m`, `3d04h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1_000);
  const pair = (unit: number, lesser: number, names: string): string => {
    const rest = Math.floor((seconds % unit) / lesser);
    return `${Math.floor(seconds / unit)}${names[0]}${String(rest).padStart(2, '0')}${names[1]}`;
  };
  if (seconds < 3_600) return pair(60, 1, 'ms');
  return seconds < 86_400 ? pair(3_600, 60, 'hm') : pair(86_400, 3_600, 'dh');
}

/** From one instant to another, or to now while it lasts; nothing before it began. */
export function formatSpan(from: string | null, to: string | null, now: number): string {
  return from === null
    ? ''
    : formatDuration(Math.max(0, (to === null ? now : Date.parse(to)) - Date.parse(from)));
}

export function formatAge(at: string, now: number): string {
  const ms = Math.max(0, now - Date.parse(at));
  if (ms < 1_000) return 'now';
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds}s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)}h ago` : `${Math.floor(seconds / 86_400)}d ago`;
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = bytes < 1_000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${power === 0 ? bytes : (bytes / 1_000 ** power).toFixed(1)} ${units[power]}`;
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads `500ms`, `30s`, `5m`, `2h`, `1d`; undefined when it is none of them. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  return match === null ? undefined : Number(match[1]) * (unitMs[match[2] ?? ''] ?? 0);
}
