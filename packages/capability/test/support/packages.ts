/** Packages with a capability in them, as a stranger would write one. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { aFolder } from './folders.ts';

/** Valid as TypeScript and as JavaScript. @param sdkUrl of the module that it imports */
export function aShoutModule(sdkUrl: string): string {
  return `
import { defineCapability } from ${JSON.stringify(sdkUrl)};
export const capability = defineCapability({
  name: 'shout',
  version: '2.0.0',
  description: 'Shouts.',
  input: { type: 'object', required: ['text'] },
  output: { type: 'object', required: ['text'] },
  cost_model: { type: 'free', rate_usd: 0 },
  tags: ['local'],
  exec: ({ text }) => ({ text: text.toUpperCase() }),
});
`;
}

/** @returns its folder, whose path has a space */
export async function writePackage(manifest: object, files: Record<string, string>): Promise<string> {
  const folder = join(await aFolder(), 'shout package');
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}
