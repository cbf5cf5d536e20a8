/** Where the parts of a test run are. Global setup starts them and keeps them here; vitest tells them to its workers. */
import type { ProvidedContext } from 'vitest';
import { inject } from 'vitest';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Maintenance database of a Postgres on which tests may create databases. */
    databaseUrl: string;
    temporalAddress: string;
    /** Folder of the compiled package. */
    packageFolder: string;
    /** File of the bundle that workers run. */
    workflowBundle: string;
    /** Where lend-capstan.ts answers. */
    lender: string;
  }
}

const kept = new Map<keyof ProvidedContext, string>();

/** For the process that has started them. */
export function keepPlace(part: keyof ProvidedContext, place: string): void {
  kept.set(part, place);
}

export function placeOf(part: keyof ProvidedContext): string {
  return kept.get(part) ?? inject(part);
}
