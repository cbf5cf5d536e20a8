import { listImports, type Source, type Violation } from './source.ts';

/** Packages that the owner named, and where each is used. None leaves this list without the owner's word. */
const ownerPackages: Readonly<Record<string, 'src' | 'test'>> = {
  '@koa/router': 'src',
  '@temporalio/activity': 'src',
  '@temporalio/client': 'src',
  '@temporalio/testing': 'test',
  '@temporalio/worker': 'src',
  '@temporalio/workflow': 'src',
  knex: 'src',
  koa: 'src',
  pg: 'src',
  zod: 'src',
};

export interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** Every package that the owner named is installed and used: in the product, or in its tests. */
export function checkOwnerPackages(sources: readonly Source[], manifest: Manifest): Violation[] {
  return Object.entries(ownerPackages).flatMap(([name, folder]) => {
    const installed = folder === 'src' ? manifest.dependencies : manifest.devDependencies;
    const users = sources.filter(({ file }) => file.startsWith(`${folder}/`));
    const isUsed = users
      .filter(({ text }) => text.includes(name))
      .some((source) => listImports(source).some(({ module }) => module === name));
    if (name in installed && isUsed) return [];
    const missing = name in installed ? `nothing in ${folder}/ imports it` : 'package.json does not name it';
    const message = `${name} is one of the packages that the owner named, and ${missing}`;
    return [{ rule: 'owner-packages', subject: name, message }];
  });
}
