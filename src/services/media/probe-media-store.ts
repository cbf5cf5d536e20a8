import { createMediaStore } from '../../clients/media/create-media-store.ts';

/** Writes, reads and deletes a small file. @returns what the store is. @throws Error that says what does not work */
export async function probeMediaStore(mediaUrl: string): Promise<string> {
  const store = await createMediaStore(mediaUrl);
  await store.probe();
  return store.name;
}
