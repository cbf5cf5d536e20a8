/** The Chromium of its package, unpacked once per machine: that takes two seconds of processor time. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { findCacheDir } from '../../../../src/dev/temporal/source.ts';

interface Package {
  readonly devDependencies: { readonly '@sparticuz/chromium': string };
}

function readVersion(): string {
  const text = readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as Package).devDependencies['@sparticuz/chromium'];
}

/** It unpacks into the folder for temporary files, which it asks for before it first waits. */
function unpackInto(folder: string): Promise<string> {
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  try {
    return chromium.executablePath();
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}

/** @returns the path of the program. Others may ask in parallel: a folder appears with all of its files. */
export async function provideChromium(): Promise<string> {
  const cacheDir = findCacheDir(process.env, homedir());
  const folder = join(cacheDir, `chromium-${readVersion()}`);
  const program = join(folder, 'chromium');
  if (existsSync(program)) return program;
  await mkdir(cacheDir, { recursive: true });
  const draft = await mkdtemp(`${folder}.`);
  await unpackInto(draft);
  await rename(draft, folder).catch(async (error) => {
    await rm(draft, { recursive: true });
    if (!existsSync(program)) throw error;
  });
  return program;
}
