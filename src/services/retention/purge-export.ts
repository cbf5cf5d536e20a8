/**
 * What is about to be deleted, as files of JSON lines in a folder: `{"table": …, "row": …}`. A file is whole and on the
 * disk before its rows go; of rows that were not deleted in the end, because the process died in between, another file
 * tells again.
 */
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';

export interface PurgeExport {
  /** Resolves when the lines are on the disk. */
  write(lines: AsyncIterable<string> | Iterable<string>): Promise<void>;
}

/** @param now names the files, so that they stand in order */
export async function createPurgeExport(folder: string, now = () => new Date()): Promise<PurgeExport> {
  await mkdir(folder, { recursive: true });
  let count = 0;
  return {
    write: async (lines) => {
      const name = `purge-${now().toISOString().replaceAll(':', '-')}-${process.pid}-${count++}.ndjson`;
      const file = await open(join(folder, name), 'wx', 0o600);
      try {
        for await (const line of lines) await file.appendFile(`${line}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
    },
  };
}
