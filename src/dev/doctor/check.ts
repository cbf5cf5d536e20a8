/** One finding of `capstan doctor`. */
export interface Check {
  readonly name: string;
  /** `missing`: Capstan does not work without it. `warning`: a part works less well. */
  readonly status: 'ok' | 'warning' | 'missing';
  /** The observed value. */
  readonly found: string;
  /** How to fix it; null: no problem. */
  readonly remedy: string | null;
}

export interface DoctorOptions {
  readonly dataDir: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly cacheDir: string;
  /** Apply harmless fixes. */
  readonly fixes: boolean;
}

export function ok(name: string, found: string): Check {
  return { name, status: 'ok', found, remedy: null };
}

export function warning(name: string, found: string, remedy: string): Check {
  return { name, found, remedy, status: 'warning' };
}

export function missing(name: string, found: string, remedy: string): Check {
  return { name, found, remedy, status: 'missing' };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
