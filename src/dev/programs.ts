/** How this package starts its own programs: from sources through the TypeScript loader, or compiled. */
import { createRequire } from 'node:module';
import { extname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

const extension = extname(import.meta.url);

/** @param path without extension, relative to `src/`, such as "server" or "dev/temporal/download" */
export function findProgram(path: string): Program {
  const file = fileURLToPath(new URL(`../${path}${extension}`, import.meta.url));
  // The loader by its address: its bare name would be looked up from the folder the user works in.
  const loader =
    extension === '.ts'
      ? ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href]
      : [];
  return { command: process.execPath, args: [...loader, file] };
}
