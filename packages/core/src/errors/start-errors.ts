/** Reasons why a process or a command cannot start: a setting is wrong, or an optional part is not installed. */
import { createRequire } from 'node:module';

export const configurationError = 'ConfigurationError';

/** A setting prevents the start of a process. The message names the setting, the value seen and the values allowed. */
export class ConfigurationError extends Error {
  override readonly name = configurationError;
}

// Parts of an installation may be left out (`npm install --omit=optional`). The error about a missing part names the
// command that installs it.

const require = createRequire(import.meta.url);

/** The command that installs optional parts in the versions of this package. */
export function installCommandOf(...parts: readonly string[]): string {
  const { optionalDependencies } = require('capstan/package.json');
  const versions: Readonly<Record<string, string>> = optionalDependencies;
  return `npm install ${parts.map((part) => `${part}@${versions[part] ?? 'latest'}`).join(' ')}`;
}

export class MissingPartError extends Error {
  override readonly name = 'MissingPartError';

  /** @param need the feature that needs it, as "the embedded Postgres" @param part its package */
  constructor(need: string, part: string, cause?: unknown) {
    super(
      `${need} needs the package ${part}, which is not installed here: ${installCommandOf(part)} brings it`,
      cause === undefined ? {} : { cause },
    );
  }
}

/** Whether an import or a `require.resolve` failed because the package is not installed. */
export function isNotInstalled(fault: unknown): boolean {
  const { code } = fault as NodeJS.ErrnoException;
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
}
