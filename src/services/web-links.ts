/** Where people see things: Temporal's Web UI, which has no link where it is not set, and the console. */
import type { Run } from '../contracts/run.ts';
import { type RunRef, runWorkflowId } from '../core/workflow-names.ts';

export interface WebPlaces {
  /** Base address of Temporal's Web UI. */
  readonly temporalUiUrl: string | undefined;
  readonly namespace: string;
  /** Base address of the console. */
  readonly consoleUrl: () => string;
}

export type WebLink = Pick<Run['links'], 'console' | 'temporal'>;

export interface WebLinks {
  ofRun(run: RunRef): WebLink;
  ofEscalation(escalationId: string, workflowId: string): WebLink;
}

export function linkBelow(base: string, path: string): string {
  return `${base}${base.endsWith('/') ? '' : '/'}${path}`;
}

export function createWebLinks({ temporalUiUrl, namespace, consoleUrl }: WebPlaces): WebLinks {
  const toTemporal = (workflowId: string): WebLink => {
    if (temporalUiUrl === undefined) return {};
    const path = `namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(workflowId)}`;
    return { temporal: linkBelow(temporalUiUrl, path) };
  };
  const toConsole = (path: string): WebLink => ({ console: linkBelow(consoleUrl(), path) });
  return {
    ofRun: (run) => ({ ...toConsole(`runs/${run.run_id}`), ...toTemporal(runWorkflowId(run)) }),
    ofEscalation: (id, workflowId) => ({ ...toConsole(`escalations/${id}`), ...toTemporal(workflowId) }),
  };
}
