import type { MediaPath } from '../../contracts/media.ts';

export interface FileToSend {
  readonly path: string;
  readonly contentType: string;
}

/** Moves whole files between a local path and a media store. */
export interface MediaTransfer {
  /** @throws Error when there is no such object */
  download(path: MediaPath, localPath: string, signal: AbortSignal): Promise<void>;
  /** Replaces the object as a whole; an aborted upload leaves what was there before. */
  upload(file: FileToSend, path: MediaPath, signal: AbortSignal): Promise<void>;
}
