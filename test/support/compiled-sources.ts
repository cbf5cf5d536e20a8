/**
 * Tests import the sources as Node runs them: from the package of compile-package.ts, by Node's own loader, which takes
 * less processor time in each worker than vitest's. Vitest still transforms tests and their support.
 */
import { dirname, relative, resolve } from 'node:path';
import type { Plugin } from 'vitest/config';
import { sourceOf } from '../../scripts/package/source-of.ts';
import { findCompiled } from './compiled.ts';

/** Names the package's folder. global-setup.ts sets it; until then, for that file itself, sources are used directly. */
export const packageVariable = 'CAPSTAN_TEST_PACKAGE';

/** For vitest's `server.deps.external`: Node imports the matching files. */
export const compiledFiles = /\/package\/dist\/.*\.js$/;

const ownSources = /^(?:src|capabilities|packages\/(?!console\/)[^/]+\/src)\/.*(?<!\.test)\.ts$/;

/** @param root the checkout */
export function compiledSources(root: string): Plugin {
  return {
    name: 'compiled-sources',
    enforce: 'pre',
    resolveId(specifier, importer) {
      const folder = process.env[packageVariable];
      if (folder === undefined) return undefined;
      const imported = sourceOf(specifier);
      if (imported !== null) return findCompiled(folder, imported);
      if (importer === undefined || !specifier.startsWith('.')) return undefined;
      const source = relative(root, resolve(dirname(importer), specifier));
      return ownSources.test(source) ? findCompiled(folder, source) : undefined;
    },
  };
}
