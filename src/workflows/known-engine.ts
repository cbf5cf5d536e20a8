/**
 * A workflow whose engine version is newer than this worker waits for one that knows it. An error that is no failure of
 * Temporal's fails the workflow task, never the workflow, and Temporal gives the task out again, in the end to a newer
 * worker. Nothing has happened before: this is the first thing that a workflow does.
 */
import { engineVersion } from '../core/workflow-payloads/engine-version.ts';

/** @throws Error that only fails the task */
export function requireKnownEngine({ engine_version }: { readonly engine_version: number }): void {
  if (engine_version <= engineVersion) return;
  throw new Error(
    `engine version ${engine_version} waits for a newer worker: this one knows ${engineVersion}`,
  );
}
