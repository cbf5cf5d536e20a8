/**
 * What is about to be deleted, as files of JSON lines in a folder: `{"table": …, "row": …}`. A file is whole and on the
 * disk before its rows go; of rows that stayed, because the process died in between or something was in their way, another
 * file tells again.
 */
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';

export interface PurgeExport {
  /** Resolves when the lines are on the disk, in a file of their own. None: no file. */
  write(lines: AsyncIterable<string> | Iterable<string>): Promise<void>;
}

/** @param now names the files, so that they stand in order */
export async function createPurgeExport(folder: string, now = () => new Date()): Promise<PurgeExport> {
  await mkdir(folder, { recursive: true });
  let count = 0;
  return {
    write: async (lines) => {
      const name = `purge-${now().toISOString().replaceAll(':', '-')}-${process.pid}-${count++}.ndjson`;
      let file: FileHandle | undefined;
      try {
        for await (const line of lines) {
          file ??= await open(join(folder, name), 'wx', 0o600);
          await file.appendFile(`${line}\n`);
        }
        await file?.sync();
      } finally {
        await file?.close();
      }
    },
  };
}
