import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** An empty folder, whose path has a space, for as long as the test runs. */
export async function aFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan test-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
