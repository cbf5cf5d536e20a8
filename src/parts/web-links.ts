/** Links to Temporal's Web UI, which is absent unless it is configured, and to the console. */

import type { Run } from '@capstan/core/contracts/run';
import { type RunRef, runWorkflowId } from '@capstan/core/workflow-names';

export interface WebPlaces {
  /** PartBase address of Temporal's Web UI. */
  readonly temporalUiUrl: string | undefined;
  readonly namespace: string;
  /** PartBase address of the console. */
  readonly consoleUrl: () => string;
}

export type WebLink = Pick<Run['links'], 'console' | 'temporal'>;

interface WebCtx {
  readonly web: WebPlaces;
}

export function linkBelow(base: string, path: string): string {
  return `${base}${base.endsWith('/') ? '' : '/'}${path}`;
}

function linksTo({ web }: WebCtx, path: string, workflowId: string): WebLink {
  const console = linkBelow(web.consoleUrl(), path);
  if (web.temporalUiUrl === undefined) return { console };
  const workflow = `namespaces/${encodeURIComponent(web.namespace)}/workflows/${encodeURIComponent(workflowId)}`;
  return { console, temporal: linkBelow(web.temporalUiUrl, workflow) };
}

export function linksToRun(ctx: WebCtx, run: RunRef): WebLink {
  return linksTo(ctx, `runs/${run.run_id}`, runWorkflowId(run));
}

export function linksToEscalation(ctx: WebCtx, escalationId: string, workflowId: string): WebLink {
  return linksTo(ctx, `escalations/${escalationId}`, workflowId);
}
