import { createMediaStore } from '../clients/media/create-media-store.ts';
import type { Config } from '../config.ts';
import type { Db } from '../db/connect.ts';
import { createDirectMedia } from '../services/media/direct-media.ts';
import { createMediaLibrary } from '../services/media/media-library.ts';
import { createRequireRoom } from '../services/media/require-room.ts';

export type MediaParts = Awaited<ReturnType<typeof createMedia>>;

/** The files of all projects, in both processes; `direct` are the ways past them that the API gives. */
export async function createMedia(config: Config, db: Db) {
  const store = await createMediaStore(config.MEDIA_URL);
  const requireRoom = createRequireRoom({ db, bytesPerProject: config.MEDIA_BYTES_PER_PROJECT });
  const library = createMediaLibrary({ db, store, requireRoom });
  const direct = createDirectMedia({
    db,
    store,
    library,
    requireRoom,
    passesBy: config.MEDIA_REDIRECT === 'true',
    limitBytes: config.MEDIA_LIMIT_BYTES,
  });
  return { library, direct };
}
