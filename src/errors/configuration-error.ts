export const configurationError = 'ConfigurationError';

/** A process cannot start with a setting that it was given. The message says which, what was seen and what is allowed. */
export class ConfigurationError extends Error {
  override readonly name = configurationError;
}
