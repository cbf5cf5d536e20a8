/** One finding of `capstan doctor`. */
export interface Check {
  readonly name: string;
  /** `missing`: Capstan does not work without it. `warning`: something works less well. */
  readonly status: 'ok' | 'warning' | 'missing';
  /** What was seen. */
  readonly found: string;
  /** How to get what is missing; null when all is well. */
  readonly remedy: string | null;
}

export interface DoctorOptions {
  readonly dataDir: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly cacheDir: string;
}

export const ok = (name: string, found: string): Check => ({ name, status: 'ok', found, remedy: null });

export const warning = (name: string, found: string, remedy: string): Check => ({
  ...{ name, found, remedy },
  status: 'warning',
});

export const missing = (name: string, found: string, remedy: string): Check => ({
  ...{ name, found, remedy },
  status: 'missing',
});

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
