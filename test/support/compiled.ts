/** Runs programs of this checkout as processes, from the package of compile-package.ts. */
import { join } from 'node:path';

/** @param packageFolder of the package @param source of the checkout, such as `src/server.ts` */
export function findCompiled(packageFolder: string, source: string): string {
  return join(packageFolder, 'dist', source.replace(/\.ts$/, '.js'));
}
