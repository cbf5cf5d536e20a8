import type { Run } from '@capstan/core/contracts/run';
import { useQuery } from '@tanstack/react-query';
import { runGraphQuery } from '../api/runs.ts';
import { useProject } from '../shared/use-project.ts';
import { type AskingStep, type RouteQuestion, routeQuestionOf } from './route-question.ts';

/** Null: its wait does not depend on the router, or its definition has not come yet. */
export function useRouteQuestion(run: Run, step: AskingStep): RouteQuestion | null {
  const { data: graph } = useQuery(runGraphQuery(run.run_id));
  const { on_budget = null } = useProject() ?? {};
  return graph === undefined ? null : routeQuestionOf({ ...run, on_budget }, graph.definition, step);
}
