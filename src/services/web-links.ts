/** Where people see things: Temporal's Web UI, and the console once there is one. What is not set has no link. */
import type { Run } from '../contracts/run.ts';
import { type RunRef, runWorkflowId } from '../core/workflow-payloads/workflow-ids.ts';

export interface WebPlaces {
  /** Base address of Temporal's Web UI. */
  readonly temporalUiUrl: string | undefined;
  readonly namespace: string;
  /** Base address of the console. */
  readonly consoleUrl: string | undefined;
}

export type WebLink = Pick<Run['links'], 'console' | 'temporal'>;

export interface WebLinks {
  ofRun(run: RunRef): WebLink;
  ofEscalation(escalationId: string, workflowId: string): WebLink;
}

function below(base: string, path: string): string {
  return `${base}${base.endsWith('/') ? '' : '/'}${path}`;
}

/** Undefined where there is no console. @param path in it */
export function linkToConsole(consoleUrl: string | undefined, path: string): string | undefined {
  return consoleUrl === undefined ? undefined : below(consoleUrl, path);
}

export function createWebLinks({ temporalUiUrl, namespace, consoleUrl }: WebPlaces): WebLinks {
  const toTemporal = (workflowId: string): WebLink => {
    if (temporalUiUrl === undefined) return {};
    const path = `namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(workflowId)}`;
    return { temporal: below(temporalUiUrl, path) };
  };
  const toConsole = (path: string): WebLink => {
    const console = linkToConsole(consoleUrl, path);
    return console === undefined ? {} : { console };
  };
  return {
    ofRun: (run) => ({ ...toConsole(`runs/${run.run_id}`), ...toTemporal(runWorkflowId(run)) }),
    ofEscalation: (id, workflowId) => ({ ...toConsole(`escalations/${id}`), ...toTemporal(workflowId) }),
  };
}
