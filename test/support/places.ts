/**
 * The locations of a test run's parts. Global setup starts the parts and stores these; vitest passes them to its
 * workers.
 */
import type { ProvidedContext } from 'vitest';
import { inject } from 'vitest';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Maintenance database of a Postgres where tests may create databases. */
    databaseUrl: string;
    temporalAddress: string;
    /** Folder of the compiled package. */
    packageFolder: string;
    /** File of the bundle that workers run. */
    workflowBundle: string;
    /** The address of lend-capstan.ts. */
    lender: string;
  }
}

const kept = new Map<keyof ProvidedContext, string>();

/** For the process that started them. */
export function keepPlace(part: keyof ProvidedContext, place: string): void {
  kept.set(part, place);
}

export function placeOf(part: keyof ProvidedContext): string {
  return kept.get(part) ?? inject(part);
}
