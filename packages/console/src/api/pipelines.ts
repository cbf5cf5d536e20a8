import type {
  PipelineSubmitted,
  PipelineSummary,
  PipelineVersion,
  Validation,
} from '@capstan/core/contracts/pipeline-answers';
import type { Plan, PlanDefinitionRequest } from '@capstan/core/contracts/plan';
import { queryOptions } from '@tanstack/react-query';
import { answerOf, askPlainly, client } from './client.ts';

interface PageOf<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

export function pipelinesQuery() {
  return queryOptions({
    queryKey: ['pipelines'],
    queryFn: () => askPlainly<PageOf<PipelineSummary>>('/v1/pipelines?limit=200'),
  });
}

export function pipelineQuery(name: string, version?: string) {
  const path = `/v1/pipelines/${name}${version === undefined ? '' : `/versions/${encodeURIComponent(version)}`}`;
  return queryOptions({
    queryKey: ['pipeline', name, 'version', version ?? 'latest'],
    queryFn: () => askPlainly<PipelineVersion>(path),
  });
}

export interface VersionLine {
  readonly version: string;
  readonly digest: string;
  readonly created_at: string;
}

export function versionsQuery(name: string) {
  return queryOptions({
    queryKey: ['pipeline', name, 'versions'],
    queryFn: () => askPlainly<PageOf<VersionLine>>(`/v1/pipelines/${name}/versions?limit=100`),
  });
}

const asYaml = { 'content-type': 'application/yaml' };

export function storeText(text: string): Promise<PipelineSubmitted> {
  return askPlainly('/v1/pipelines', { method: 'POST', body: text, headers: asYaml });
}

/** The server's findings about a text; fetched again when the fleet has a new capability. */
export function validationQuery(text: string) {
  return queryOptions({
    queryKey: ['validation', text],
    queryFn: ({ signal }) =>
      askPlainly<Validation>('/v1/pipelines/validate', {
        method: 'POST',
        body: text,
        headers: asYaml,
        signal,
      }),
    staleTime: 30_000,
    gcTime: 60_000,
    retry: false,
  });
}

export function planPipeline(name: string, body: { version?: string; job?: object }): Promise<Plan> {
  return askPlainly(`/v1/pipelines/${name}/plan`, { method: 'POST', body });
}

type RunWish = Omit<PlanDefinitionRequest, 'definition'>;

export function planDefinition(definition: object, given: RunWish = {}): Promise<Plan> {
  return answerOf(client.POST('/v1/plan', { body: { definition, ...given } as never })) as Promise<Plan>;
}
