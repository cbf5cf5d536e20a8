/** Programs of this checkout as processes, out of the package that compile-package.ts makes. */
import { join } from 'node:path';

/** For every process that runs compiled files: its stack traces name the sources. */
export const compiledFlags = ['--enable-source-maps'] as const;

/** @param packageFolder where the package is @param source of the checkout, such as `src/server.ts` */
export function findCompiled(packageFolder: string, source: string): string {
  return join(packageFolder, 'dist', source.replace(/\.ts$/, '.js'));
}
