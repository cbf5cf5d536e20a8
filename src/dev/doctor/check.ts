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
  /** What can be mended without harm is mended. */
  readonly fixes: boolean;
}

export function ok(name: string, found: string): Check {
  return { name, status: 'ok', found, remedy: null };
}

export function warning(name: string, found: string, remedy: string): Check {
  return {
    name,
    found,
    remedy,
    status: 'warning',
  };
}

export function missing(name: string, found: string, remedy: string): Check {
  return {
    name,
    found,
    remedy,
    status: 'missing',
  };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
