/** Builds the page into dist/console/, each file beside its compressed forms, and the hash of what it was made of. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';
import { consoleHashFile, hashConsoleSources } from '../../src/dev/console.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const smallest = 1_024;
const compressible = /\.(html|js|css|svg|json)$/;

function listFiles(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? listFiles(path) : [path];
  });
}

function compress(file: string): void {
  const bytes = readFileSync(file);
  if (!compressible.test(file) || bytes.length < smallest) return;
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
}

// The caller may be a test, for which libraries would bring what only developers need.
process.env.NODE_ENV = 'production';
// Read before the build: what changes meanwhile makes the next start build again.
const hash = hashConsoleSources(root);
await build({ configFile: join(root, 'packages', 'console', 'vite.config.ts'), logLevel: 'warn' });
for (const file of listFiles(join(root, 'dist', 'console'))) compress(file);
writeFileSync(join(root, consoleHashFile), `${hash}\n`);
