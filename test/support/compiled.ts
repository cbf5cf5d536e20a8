/** Programs of this checkout as processes, out of the package that compile-package.ts makes. */
import { join } from 'node:path';

/** @param packageFolder where the package is @param source of the checkout, such as `src/server.ts` */
export function findCompiled(packageFolder: string, source: string): string {
  return join(packageFolder, 'dist', source.replace(/\.ts$/, '.js'));
}
