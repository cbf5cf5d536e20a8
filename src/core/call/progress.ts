/** How far a call has come, as its instance says. */
export interface CallProgress {
  /** 0 to 1. */
  readonly progress: number;
  readonly message?: string;
}

const longestMessage = 200;

/** Null when it is no line of progress: nothing but `progress`, a number from 0 to 1, and perhaps `message`. */
export function readProgress(value: unknown): CallProgress | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const { progress, message, ...rest } = value as Record<string, unknown>;
  if (typeof progress !== 'number' || !(progress >= 0 && progress <= 1)) return null;
  if (Object.keys(rest).length > 0 || (message !== undefined && typeof message !== 'string')) return null;
  const shown = message
    ?.slice(0, longestMessage)
    .replace(/\p{Cc}/gu, ' ')
    .replace(/\p{Cs}/gu, '\uFFFD');
  return shown === undefined ? { progress } : { progress, message: shown };
}
