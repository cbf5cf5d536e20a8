/** How many bytes of uploads this process holds in memory while it sends them. */
import { AppError } from '../../errors/app-error.ts';

export interface UploadGate {
  /** Now, of those that are being sent. */
  readonly heldBytes: () => number;
  /**
   * @param bytes what it holds; one that holds more than all may goes by itself
   * @throws AppError `unavailable` when there is no room for it in time
   */
  pass<Result>(bytes: number, upload: () => Promise<Result>): Promise<Result>;
}

interface WaitingUpload {
  readonly bytes: number;
  readonly begin: () => void;
}

function noRoom(seen: string): AppError {
  return new AppError('unavailable', `uploads into the media store ${seen} more`, { retryAfterS: 5 });
}

interface GateLimits {
  readonly mostBytes: number;
  /** How long one waits for its turn; they go in their order. */
  readonly waitMs: number;
}

function createRoom({ mostBytes, waitMs }: GateLimits) {
  const waiting: WaitingUpload[] = [];
  let held = 0;
  const admit = (): void => {
    for (let next = waiting[0]; next !== undefined && held + next.bytes <= mostBytes; next = waiting[0]) {
      waiting.shift();
      held += next.bytes;
      next.begin();
    }
  };
  const enter = (bytes: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(own), 1);
        reject(
          noRoom(`hold ${held} of ${mostBytes} bytes here, and within ${waitMs} ms had no room for ${bytes}`),
        );
        admit();
      }, waitMs);
      const begin = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const own: WaitingUpload = { bytes, begin };
      waiting.push(own);
      admit();
    });
  const leave = (bytes: number): void => {
    held -= bytes;
    admit();
  };
  return { enter, leave, heldBytes: () => held };
}

export function createUploadGate(limits: GateLimits): UploadGate {
  const { enter, leave, heldBytes } = createRoom(limits);
  return {
    heldBytes,
    pass: async (bytes, upload) => {
      const own = Math.min(bytes, limits.mostBytes);
      await enter(own);
      try {
        return await upload();
      } finally {
        leave(own);
      }
    },
  };
}
