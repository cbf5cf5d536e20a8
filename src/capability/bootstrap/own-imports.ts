/**
 * Lets a capability anywhere on this machine import `capstan/capability` and `zod` without having installed them,
 * and be written in TypeScript: a folder that was just written can be started. It holds for the whole process.
 */
import { register } from 'node:module';
import { extname } from 'node:path';
import { isNotInstalled } from '../../errors/missing-part.ts';
import type { OwnModules } from './own-imports-hook.ts';

const extension = extname(import.meta.url);

/** From sources this process reads TypeScript already. Where the loader was left out, JavaScript does without. */
async function lendTypeScript(): Promise<void> {
  try {
    (await import('tsx/esm/api')).register();
  } catch (fault) {
    if (!isNotInstalled(fault)) throw fault;
  }
}

export async function lendOwnImports(): Promise<void> {
  if (extension !== '.ts') await lendTypeScript();
  const data: OwnModules = {
    'capstan/capability': new URL(`../index${extension}`, import.meta.url).href,
    zod: import.meta.resolve('zod'),
  };
  register(new URL(`./own-imports-hook${extension}`, import.meta.url), { data });
}
