/** How many uploads pass through this process at once: each holds some parts of its file in memory. */
import { AppError } from '../../errors/app-error.ts';

export interface UploadGate {
  /** @throws AppError `unavailable` when no upload before it ends in time */
  pass<Result>(upload: () => Promise<Result>): Promise<Result>;
}

/** @param waitMs how long one waits for its turn, with its body unread */
export function createUploadGate({ most, waitMs }: { most: number; waitMs: number }): UploadGate {
  const waiting: (() => void)[] = [];
  let inside = 0;
  const enter = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const refuse = (): void => {
        waiting.splice(waiting.indexOf(begin), 1);
        const message = `${most} uploads into the media store are under way here, as many as are allowed, and none has ended within ${waitMs} ms`;
        reject(new AppError('unavailable', message, { retryAfterS: 5 }));
      };
      const timer = setTimeout(refuse, waitMs);
      const begin = (): void => {
        clearTimeout(timer);
        inside++;
        resolve();
      };
      if (inside < most) begin();
      else waiting.push(begin);
    });
  return {
    pass: async (upload) => {
      await enter();
      try {
        return await upload();
      } finally {
        inside--;
        waiting.shift()?.();
      }
    },
  };
}
