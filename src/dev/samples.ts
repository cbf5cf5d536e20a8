/** The sample capabilities that come with Capstan. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describeCapability, isRegistered, type StackAccess } from './capability-process.ts';
import type { ChildSpec } from './supervisor/child-process.ts';

export const sampleNames = ['concat', 'audio-mix', 'thumbnail'] as const;

/** Null when this installation carries no such sample. */
export function describeSample(name: (typeof sampleNames)[number], access: StackAccess): ChildSpec | null {
  const folder = fileURLToPath(new URL(`../../capabilities/${name}`, import.meta.url));
  if (!existsSync(folder)) return null;
  const isReady: ChildSpec['isReady'] = ({ startedAt }) => isRegistered(name, access, startedAt);
  return describeCapability({ name, folder, isReady }, access);
}
