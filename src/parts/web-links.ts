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

/** Where the console shows a ladder: at its step, else at the review that it ended in. */
interface ShownLadder {
  readonly run_id: string | null;
  readonly step_id: string | null;
  readonly item: number | null;
  readonly review_id: string | null;
}

function pathToLadder({ run_id, step_id, item, review_id }: ShownLadder): string | null {
  if (run_id !== null && step_id !== null) {
    const which = item === null || item === 0 ? '' : `&item=${item}`;
    return `runs/${run_id}?step=${encodeURIComponent(step_id)}${which}&tab=ladder`;
  }
  return review_id === null ? null : `reviews/${review_id}`;
}

/** A ladder without a run and without a review has no page. */
export function linksToEscalation(ctx: WebCtx, ladder: ShownLadder, workflowId: string): Partial<WebLink> {
  const path = pathToLadder(ladder);
  const { console, ...temporal } = linksTo(ctx, path ?? '', workflowId);
  return path === null ? temporal : { console, ...temporal };
}
