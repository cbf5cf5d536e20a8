/**
 * Lets a capability anywhere on this machine import `capstan/capability` and `zod` without having installed them,
 * and be written in TypeScript: a folder that was just written can be started. It holds for the whole process.
 */
import { register } from 'node:module';
import { extname } from 'node:path';
import type { OwnModules } from './own-imports-hook.ts';

const extension = extname(import.meta.url);

export async function lendOwnImports(): Promise<void> {
  // From sources this process reads TypeScript already.
  if (extension !== '.ts') (await import('tsx/esm/api')).register();
  const data: OwnModules = {
    'capstan/capability': new URL(`../index${extension}`, import.meta.url).href,
    zod: import.meta.resolve('zod'),
  };
  register(new URL(`./own-imports-hook${extension}`, import.meta.url), { data });
}
