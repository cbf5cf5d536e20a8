/** How many bytes of files a project may have. Uploads of the same moment may pass it together. */
import type { MediaPath } from '../../contracts/media.ts';
import type { Db } from '../../db/connect.ts';
import { sumBytes } from '../../db/media/media-object.ts';
import { AppError } from '../../errors/app-error.ts';

/** @returns how many bytes the file may have. @throws AppError `media_quota` when those that it has are more */
export type RequireRoom = (path: MediaPath, bytes: number) => Promise<number>;

interface RoomDependencies {
  readonly db: Db;
  /** Of a project's files together; 0 = any. */
  readonly bytesPerProject: number;
}

export function createRequireRoom({ db, bytesPerProject }: RoomDependencies): RequireRoom {
  return async (path, bytes) => {
    if (bytesPerProject === 0) return Number.POSITIVE_INFINITY;
    const others = await sumBytes(db, path);
    const room = bytesPerProject - others;
    if (room >= 0 && bytes <= room) return room;
    throw new AppError(
      'media_quota',
      `the other files of the project have ${others} bytes, and this one would have ${bytes} or more; it may have ${bytesPerProject} together`,
      { details: { stored_bytes: others, file_bytes: bytes, allowed_bytes: bytesPerProject } },
    );
  };
}
