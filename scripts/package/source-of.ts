/** Where the packages of the workspace keep what others import of them. */

const ownPackage = /^@capstan\/([a-z-]+)(?:\/(.+))?$/;

/**
 * @param specifier as a module imports it: `@capstan/core/money/scopes`, `@capstan/capability`
 * @returns the file in the repository, or null when the specifier names no package of the workspace
 */
export function sourceOf(specifier: string): string | null {
  const [, name, path = 'index'] = ownPackage.exec(specifier) ?? [];
  return name === undefined ? null : `packages/${name}/src/${path}.ts`;
}
